#include "mpi/find_library.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>

#include "base/text.h"
#include "topology/variables.h"

namespace hvd::mpi {
namespace {

using topology::text_variable;

// MPI libraries load parts of themselves, which look for its symbols in the global scope.
constexpr int kFlags = RTLD_NOW | RTLD_GLOBAL;

constexpr char kOpenMpi[] = "libmpi.so.40";
constexpr char kMpich[] = "libmpi.so.12";
constexpr char kDebianMpich[] = "libmpich.so.12";
constexpr char kStandard[] = "libmpi_abi.so.1";

// A process further up than this is hardly the launcher.
constexpr int kMostAncestors = 8;

std::string loaded_path() {
  std::string found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        if (info->dlpi_name == nullptr || !is_library_name(info->dlpi_name)) return 0;
        *static_cast<std::string*>(out) = info->dlpi_name;
        return 1;
      },
      &found);
  return found;
}

std::string executable_of(pid_t pid) {
  char path[4096];
  const ssize_t length = readlink(concat("/proc/", pid, "/exe").c_str(), path, sizeof path);
  return length <= 0 ? "" : std::string(path, static_cast<size_t>(length));
}

pid_t parent_of(pid_t pid) {
  std::ifstream file(concat("/proc/", pid, "/stat"));
  std::stringstream text;
  text << file.rdbuf();
  // The command, in parentheses, may hold anything; state and parent follow.
  std::string stat = text.str();
  stat.erase(0, std::min(stat.rfind(')'), stat.size()));
  std::istringstream fields(stat);
  std::string closing, state;
  pid_t parent = 0;
  fields >> closing >> state >> parent;
  return parent;
}

// "/a/lib" for each launcher "/a/bin/x" above this process.
std::vector<std::string> folders_of_ancestors() {
  std::vector<std::string> out;
  pid_t pid = getppid();
  for (int i = 0; i < kMostAncestors && pid > 1; ++i, pid = parent_of(pid)) {
    const std::string path = executable_of(pid);
    const size_t name = path.rfind('/');
    if (name == std::string::npos || name == 0) continue;
    const size_t folder = path.rfind('/', name - 1);
    if (folder == std::string::npos || path.substr(folder, name - folder) != "/bin") continue;
    std::string library_folder = path.substr(0, folder) + "/lib";
    if (std::find(out.begin(), out.end(), library_folder) == out.end())
      out.push_back(std::move(library_folder));
  }
  return out;
}

class Search {
 public:
  bool try_to_open(const std::string& path, int more_flags = 0) {
    found_.handle = dlopen(path.c_str(), kFlags | more_flags);
    found_.path = path;
    if (found_.handle != nullptr) return true;
    const char* error = dlerror();
    tried_.push_back(error != nullptr ? std::string(error) : path);
    return false;
  }
  const Symbols& found() const { return found_; }
  std::string tried() const { return join_text(tried_, "; "); }

 private:
  Symbols found_;
  std::vector<std::string> tried_;
};

bool search_by_name(Search& search, const Environment& environment) {
  const std::vector<std::string> names = usual_names(environment);
  for (const std::string& folder : folders_of_ancestors()) {
    for (const std::string& name : names) {
      const std::string path = concat(folder, "/", name);
      if (access(path.c_str(), R_OK) == 0 && search.try_to_open(path)) return true;
    }
  }
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return search.try_to_open(name); });
}

}  // namespace

bool is_library_name(const std::string& path) {
  std::string_view name(path);
  name.remove_prefix(std::min(name.size(), name.rfind('/') + 1));
  for (const std::string_view stem : {"libmpi.so", "libmpich.so", "libmpi_abi.so"}) {
    if (name.substr(0, stem.size()) == stem &&
        (name.size() == stem.size() || name[stem.size()] == '.'))
      return true;
  }
  return false;
}

std::vector<std::string> usual_names(const Environment& environment) {
  const bool is_open_mpi = text_variable(environment, "OMPI_COMM_WORLD_SIZE").has_value();
  const bool is_pmi = text_variable(environment, "PMI_SIZE").has_value();
  if (is_pmi && !is_open_mpi) return {kMpich, kDebianMpich, kStandard};
  if (is_open_mpi) return {kOpenMpi, kStandard};
  return {kStandard, kOpenMpi, kMpich, kDebianMpich};
}

bool is_loaded() { return !loaded_path().empty(); }

Result<Symbols> find_library(const Environment& environment) {
  Search search;
  if (const auto given = text_variable(environment, "HOROVOD_MPI_LIBRARY")) {
    if (search.try_to_open(*given)) return search.found();
    return precondition_error(concat("HOROVOD_MPI_LIBRARY: ", search.tried()));
  }
  if (const std::string path = loaded_path(); !path.empty()) {
    if (search.try_to_open(path, RTLD_NOLOAD)) return search.found();
  }
  if (search_by_name(search, environment)) return search.found();
  return precondition_error(concat("no MPI library was found (", search.tried(),
                                   "); name it in HOROVOD_MPI_LIBRARY, or set LD_LIBRARY_PATH"));
}

}  // namespace hvd::mpi
