#include "bootstrap/pmix_client.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <future>
#include <string>
#include <utility>

#include "base/text.h"
#include "topology/variables.h"

namespace hvd::bootstrap {
namespace {

// ---- Our own declarations of what is used of libpmix.so.2 (PMIx 2 to 5), whose layout is stable.

constexpr int kSuccess = 0;
constexpr uint8_t kGlobalScope = 3;
constexpr uint16_t kBoolType = 1, kStringType = 3, kIntType = 6;
constexpr char kTimeoutKey[] = "pmix.timeout";
constexpr char kCollectKey[] = "pmix.collect";
constexpr size_t kMostValueBytes = 16 << 10;  // no limit of PMIx

struct Proc {
  char name_space[256];
  uint32_t rank;
};
struct Value {
  uint16_t type;
  union {
    char* string;
    int integer;
    bool flag;
    uint64_t words[3];
  } data;
};
struct Info {
  char key[512];
  uint32_t flags;
  Value value;
};
using OpCallback = void (*)(int status, void* data);

struct Calls {
  int (*init)(Proc*, Info*, size_t) = nullptr;
  int (*finalize)(const Info*, size_t) = nullptr;
  int (*put)(uint8_t scope, const char* key, Value*) = nullptr;
  int (*commit)() = nullptr;
  int (*fence)(const Proc*, size_t, const Info*, size_t, OpCallback, void*) = nullptr;
  int (*get)(const Proc*, const char* key, const Info*, size_t, Value**) = nullptr;
  const char* (*error_text)(int) = nullptr;
};

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// Null: not installed. Never unloaded: it has threads.
const Calls* load() {
  static const Calls* const loaded = []() -> const Calls* {
    void* const library = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    static Calls calls;
    const bool is_complete =
        find(library, "PMIx_Init", calls.init) && find(library, "PMIx_Finalize", calls.finalize) &&
        find(library, "PMIx_Put", calls.put) && find(library, "PMIx_Commit", calls.commit) &&
        find(library, "PMIx_Fence_nb", calls.fence) && find(library, "PMIx_Get", calls.get) &&
        find(library, "PMIx_Error_string", calls.error_text);
    return is_complete ? &calls : nullptr;
  }();
  return loaded;
}

Info make_info(const char* key, uint16_t type) {
  Info info{};
  std::strncpy(info.key, key, sizeof info.key - 1);
  info.value.type = type;
  return info;
}

// What the library writes to when a barrier is over, which may be after nobody waits any more.
struct Fence {
  std::promise<int> status;
  Info collect = make_info(kCollectKey, kBoolType);
};

class PmixClient final : public ProcessManager {
 public:
  PmixClient(const Calls& calls, const Proc& self) : calls_(calls), self_(self) {}

  size_t longest_value() const override { return kMostValueBytes; }

  Status put(std::string_view key, std::string_view value, Deadline) override {
    std::string text(value);
    Value out{};
    out.type = kStringType;
    out.data.string = text.data();
    HVD_TRY(check("putting a value", calls_.put(kGlobalScope, std::string(key).c_str(), &out)));
    return check("committing a value", calls_.commit());
  }

  Status barrier(Deadline deadline) override {
    const auto fence = std::make_shared<Fence>();  // shared with the library
    fence->collect.value.data.flag = true;
    std::future<int> over = fence->status.get_future();
    auto* const theirs = new std::shared_ptr<Fence>(fence);
    const auto callback = [](int status, void* data) {
      const std::unique_ptr<std::shared_ptr<Fence>> owned(
          static_cast<std::shared_ptr<Fence>*>(data));
      (*owned)->status.set_value(status);
    };
    const int begun = calls_.fence(nullptr, 0, &fence->collect, 1, callback, theirs);
    if (begun != kSuccess) delete theirs;
    HVD_TRY(check("a barrier", begun));
    if (over.wait_for(deadline.remaining(std::chrono::hours(1))) != std::future_status::ready)
      return Status(StatusCode::kTimedOut, "PMIx: not all ranks came in time");
    return check("a barrier", over.get());
  }

  Result<std::string> get(std::string_view key, Deadline deadline) override {
    Proc first = self_;
    first.rank = 0;
    Info timeout = make_info(kTimeoutKey, kIntType);
    const Nanoseconds left = deadline.remaining(std::chrono::hours(1));
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(left).count();
    timeout.value.data.integer = static_cast<int>(std::max<int64_t>(seconds, 1));
    Value* value = nullptr;
    HVD_TRY(check("getting a value of rank 0",
                  calls_.get(&first, std::string(key).c_str(), &timeout, 1, &value)));
    if (value == nullptr) return corrupted("PMIx: rank 0 has put no value");
    std::string text;
    const bool is_string = value->type == kStringType && value->data.string != nullptr;
    if (is_string) text = value->data.string;
    if (is_string) std::free(value->data.string);
    std::free(value);
    if (!is_string) return corrupted("PMIx: expected a text of rank 0, got another type");
    return text;
  }

  Status finalize(Deadline) override { return check("taking leave", calls_.finalize(nullptr, 0)); }

 private:
  Status check(const char* what, int status) const {
    if (status == kSuccess) return Status::ok();
    return precondition_error(concat("PMIx: ", what, ": ", calls_.error_text(status)));
  }

  const Calls& calls_;
  const Proc self_;
};

}  // namespace

bool has_pmix(const Environment& environment) {
  const auto has = [&](const char* name) {
    return topology::text_variable(environment, name).has_value();
  };
  const bool has_server = has("PMIX_SERVER_URI2") || has("PMIX_SERVER_URI21") ||
                          has("PMIX_SERVER_URI3") || has("PMIX_SERVER_URI4") ||
                          has("PMIX_SERVER_URI41");
  return has_server && has("PMIX_NAMESPACE") && has("PMIX_RANK") && load() != nullptr;
}

Result<std::unique_ptr<ProcessManager>> open_pmix() {
  const Calls* const calls = load();
  if (calls == nullptr) return precondition_error("PMIx: libpmix.so.2 is not installed");
  Proc self{};
  if (const int status = calls->init(&self, nullptr, 0); status != kSuccess)
    return precondition_error(concat("PMIx: greeting the server: ", calls->error_text(status)));
  return std::unique_ptr<ProcessManager>(std::make_unique<PmixClient>(*calls, self));
}

}  // namespace hvd::bootstrap
