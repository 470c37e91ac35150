#include "launch/doctor/gloo_facts.h"

#include <unistd.h>

#include <filesystem>

#include "base/parse.h"
#include "gloo/library.h"
#include "launch/os/command_path.h"
#include "launch/os/run_program.h"
#include "launch/plan/prepare.h"

namespace hvd::launch {
namespace {

constexpr char kVariable[] = "HOROVOD_GLOO_PLUGIN";
constexpr std::chrono::seconds kPackageTime{20};
constexpr char kAskForFile[] =
    "import importlib.util as u, os\n"
    "s = u.find_spec('horovod')\n"
    "f = [os.path.join(p, 'lib', 'libhorovod_gloo.so') for p in s.submodule_search_locations] if s "
    "else []\n"
    "print(next(filter(os.path.exists, f), ''))";

std::string file_of_package(const EnvironmentList& environment,
                            const std::vector<std::string>& pythons) {
  for (const std::string& python : pythons) {
    const auto output =
        run_program({python, "-c", kAskForFile}, environment, Deadline::after(kPackageTime));
    if (output && output->status.is_success()) return std::string(trim(output->out));
  }
  return "";
}

}  // namespace

std::vector<std::string> pythons_to_ask() {
  std::vector<std::string> pythons;
  if (const auto own = own_executable()) {
    const std::filesystem::path beside = std::filesystem::path(*own).replace_filename("python");
    if (::access(beside.c_str(), X_OK) == 0) pythons.push_back(beside.string());
  }
  pythons.insert(pythons.end(), {"python", "python3"});
  return pythons;
}

GlooFacts find_gloo(const EnvironmentList& environment, const std::vector<std::string>& pythons) {
  EnvironmentList variables = environment;
  const auto lookup = [&](const char* name) { return get_variable(variables, name); };
  auto plugin = gloo::load(lookup);
  if (!plugin && !lookup(kVariable)) {
    if (const std::string file = file_of_package(environment, pythons); !file.empty()) {
      set_variable(variables, kVariable, file);
      plugin = gloo::load(lookup);
    }
  }
  if (!plugin) return {false, plugin.status().message()};
  return {true, (*plugin)->description()};
}

}  // namespace hvd::launch
