#include "gloo/library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "base/thread_annotations.h"
#include "topology/variables.h"

namespace hvd::gloo {
namespace {

constexpr char kFileName[] = "libhorovod_gloo.so";
constexpr char kHowToGet[] =
    "; install libgloo-dev and build horovod again, or name the plug-in in HOROVOD_GLOO_PLUGIN";

// Its symbols first, whatever the program has in the global scope. Sanitizers do not work with it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kFlags = RTLD_NOW | RTLD_LOCAL;
#else
constexpr int kFlags = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif

std::string own_file() {
  Dl_info info{};
  // Any address of this file would do.
  if (dladdr(reinterpret_cast<const void*>(&check_table), &info) == 0 || info.dli_fname == nullptr)
    return "";
  std::string path = info.dli_fname;
  if (path.find('/') != std::string::npos) return path;
  char program[4096];  // a program's own name is what it was called by
  const ssize_t length = ::readlink("/proc/self/exe", program, sizeof program);
  return length <= 0 ? "" : std::string(program, static_cast<size_t>(length));
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// What dlopen says, with what to do about it.
std::string explain(const std::string& path, const char* error) {
  const std::string_view text = error == nullptr ? "cannot be loaded" : error;
  const bool is_gloo_missing = text.find("libgloo") != std::string_view::npos &&
                               text.find("cannot open shared object") != std::string_view::npos;
  if (is_gloo_missing) return concat("its Gloo library is missing (", text, "): install libgloo0");
  const bool lacks_symbol = text.find("undefined symbol") != std::string_view::npos;
  if (lacks_symbol)
    return concat("the Gloo library here is not the one it was built for (", text, ")");
  return concat("the plug-in ", path, " cannot be loaded (", text, ")");
}

Result<const hvd_gloo_plugin*> load_now(const Environment& environment) {
  const std::vector<std::string> candidates = plugin_candidates(environment, own_file());
  const auto found =
      std::find_if(candidates.begin(), candidates.end(),
                   [](const std::string& path) { return ::access(path.c_str(), R_OK) == 0; });
  if (found == candidates.end()) {
    return precondition_error(concat("the plug-in ", kFileName, " is not installed (looked for ",
                                     join_text(candidates, ", "), ")", kHowToGet));
  }
  void* const library = dlopen(found->c_str(), kFlags);
  if (library == nullptr) return precondition_error(explain(*found, dlerror()));
  const auto entry = reinterpret_cast<hvd_gloo_plugin_entry>(dlsym(library, HVD_GLOO_PLUGIN_ENTRY));
  return check_table(entry == nullptr ? nullptr : entry(), *found);
}

}  // namespace

std::vector<std::string> plugin_candidates(const Environment& environment,
                                           const std::string& own_file) {
  if (const auto given = topology::text_variable(environment, "HOROVOD_GLOO_PLUGIN"))
    return {*given};
  const std::string folder = folder_of(own_file);
  return {concat(folder, "/", kFileName), concat(folder, "/../lib/", kFileName)};
}

Result<const hvd_gloo_plugin*> check_table(const hvd_gloo_plugin* table, const std::string& path) {
  if (table == nullptr) {
    return precondition_error(
        concat(path, " is not horovod's plug-in for Gloo: it lacks ", HVD_GLOO_PLUGIN_ENTRY));
  }
  if (table->version != HVD_GLOO_PLUGIN_VERSION || table->struct_size < sizeof(hvd_gloo_plugin)) {
    return precondition_error(concat("the plug-in ", path, " has version ", table->version,
                                     " and a table of ", table->struct_size,
                                     " bytes, expected version ", HVD_GLOO_PLUGIN_VERSION, " and ",
                                     sizeof(hvd_gloo_plugin), " bytes: it is of another horovod"));
  }
  return table;
}

Offer make_offer(const Environment& environment) {
  if (!is_wanted(environment)) return {};
  const auto plugin = load(environment);
  return {true, plugin ? "" : plugin.status().message()};
}

Result<const hvd_gloo_plugin*> load(const Environment& environment) {
  // What was found stays: it cannot be loaded a second time, and nothing here is unloaded.
  static Mutex* const mutex = new Mutex();  // NOLINT: never destroyed, on purpose
  static const hvd_gloo_plugin* loaded = nullptr;
  MutexLock lock(*mutex);
  if (loaded != nullptr) return loaded;
  HVD_TRY_ASSIGN(loaded, load_now(environment));
  return loaded;
}

}  // namespace hvd::gloo
