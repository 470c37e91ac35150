#include "launch/doctor/gpu_facts.h"

#include "base/parse.h"
#include "base/text.h"
#include "device/driver.h"
#include "device/nccl_api.h"
#include "launch/os/run_program.h"

namespace hvd::launch {
namespace {

constexpr std::chrono::seconds kAskNcclTime{20};
// Programs that import torch find this one loaded; others must be told.
constexpr char kAskPythonForNccl[] =
    "import importlib.util as u, pathlib\n"
    "try: s = u.find_spec('nvidia.nccl')\n"
    "except ImportError: s = None\n"
    "for f in s.submodule_search_locations if s else ():\n"
    "    p = pathlib.Path(f, 'lib', 'libnccl.so.2')\n"
    "    if p.exists(): print(p)\n";

std::string cuda_version_text(int version) {
  return concat("CUDA ", version / 1000, ".", version % 1000 / 10);
}

std::string describe_devices(const device::Driver& driver) {
  std::vector<std::string> texts;
  for (int i = 0; i < driver.device_count(); ++i) {
    const auto name = driver.name(i), place = driver.bus_id(i);
    texts.push_back(concat(name ? *name : name.status().message(), " at ",
                           place ? *place : place.status().message()));
  }
  return join_text(texts);
}

std::string packaged_nccl(const EnvironmentList& environment,
                          const std::vector<std::string>& pythons) {
  for (const std::string& python : pythons) {
    const auto output =
        run_program({python, "-c", kAskPythonForNccl}, environment, Deadline::after(kAskNcclTime));
    if (!output || !output->status.is_success()) continue;
    const std::string_view text = trim(output->out);
    if (!text.empty()) return std::string(text.substr(0, text.find('\n')));
  }
  return "";
}

}  // namespace

GpuFacts find_gpus(const EnvironmentList& environment, const std::vector<std::string>& pythons) {
  GpuFacts facts;
  std::string nccl_path;
  const Environment variables = [&](const char* name) -> std::optional<std::string> {
    if (!nccl_path.empty() && std::string_view(name) == "HOROVOD_NCCL_LIB") return nccl_path;
    return get_variable(environment, name);
  };
  const auto driver = device::Driver::load(variables);
  if (driver) {
    facts.device_count = (*driver)->device_count();
    facts.driver_text =
        concat(facts.device_count, " by ", (*driver)->path(), ", ",
               cuda_version_text((*driver)->version()), ": ", describe_devices(**driver));
  } else {
    facts.driver_text = driver.status().message();
  }
  auto nccl = device::NcclApi::load(variables);
  if (!nccl && !variables("HOROVOD_NCCL_LIB")) {
    nccl_path = packaged_nccl(environment, pythons);
    if (!nccl_path.empty()) nccl = device::NcclApi::load(variables);
  }
  facts.has_nccl = static_cast<bool>(nccl);
  facts.nccl_text = nccl ? concat(device::nccl_version_text(nccl->version), ", ", nccl->path)
                         : nccl.status().message();
  if (nccl) facts.nccl_path = nccl_path;
  return facts;
}

}  // namespace hvd::launch
