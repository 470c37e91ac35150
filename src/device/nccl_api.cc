#include "device/nccl_api.h"

#include <dlfcn.h>

#include "base/text.h"

namespace hvd::device {
namespace {

constexpr const char* kUsualNccl = "libnccl.so.2";

Status no_nccl(std::string_view why) {
  return Status(StatusCode::kPreconditionError, concat("NCCL is not there: ", why));
}

// The one that a framework has brought is the one to use: two in a process hold memory twice.
void* open_library(const std::optional<std::string>& named, std::string& path) {
  path = named.value_or(kUsualNccl);
  if (!named) {
    if (void* loaded = dlopen(kUsualNccl, RTLD_NOW | RTLD_NOLOAD)) return loaded;
  }
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed
}

Status find_functions(void* library, NcclApi& api) {
#define HVD_FIND(member, symbol, ...)                                          \
  api.member = reinterpret_cast<decltype(api.member)>(dlsym(library, symbol)); \
  if (api.member == nullptr) return no_nccl(concat(api.path, " has no function ", symbol));
  HVD_NCCL_FUNCTIONS(HVD_FIND)
#undef HVD_FIND
  return Status::ok();
}

}  // namespace

std::string nccl_version_text(int version) {
  return concat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

Result<NcclApi> NcclApi::load(const Environment& environment) {
  NcclApi api;
  void* const library = open_library(environment("HOROVOD_NCCL_LIB"), api.path);
  if (library == nullptr) {
    const char* text = dlerror();
    return no_nccl(text == nullptr ? "unknown reason" : text);
  }
  HVD_TRY(find_functions(library, api));
  HVD_TRY(api.check(api.get_version(&api.version), "ncclGetVersion"));
  if (api.version < kLeastNccl) {
    return no_nccl(concat(api.path, " is version ", nccl_version_text(api.version), ", expected ",
                          nccl_version_text(kLeastNccl), " or newer"));
  }
  return api;
}

Result<const NcclApi*> NcclApi::get() {
  static auto* const loaded = new Result<NcclApi>(load(process_environment()));
  if (!*loaded) return loaded->status();
  return static_cast<const NcclApi*>(&**loaded);
}

Status NcclApi::check(int code, std::string_view what, NcclComm comm) const {
  if (code == kNcclSuccess || code == kNcclInProgress) return Status::ok();
  const char* detail = last_error(comm);
  std::string text = concat(what, ": ", error_text(code));
  if (detail != nullptr && *detail != '\0') text += concat(" (", detail, ")");
  return unknown_error(text);
}

}  // namespace hvd::device
