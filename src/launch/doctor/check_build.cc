#include "launch/doctor/check_build.h"

#include <string>
#include <vector>

#include "base/parse.h"
#include "base/text.h"
#include "base/version.h"
#include "launch/doctor/gloo_facts.h"
#include "launch/doctor/gpu_facts.h"
#include "launch/os/command_path.h"
#include "launch/os/run_program.h"

namespace hvd::launch {
namespace {

constexpr std::chrono::seconds kPythonTime{20};
constexpr char kAskPython[] =
    "import importlib.util as u\n"
    "print(' '.join(n for n in ('tensorflow', 'torch', 'mxnet') if u.find_spec(n)))";

void append_section(std::string& text, std::string_view title,
                    const std::vector<BuildItem>& items) {
  text += concat("\n", title, ":\n");
  for (const BuildItem& item : items) {
    text += concat("    ", item.is_available ? "[X] " : "[ ] ", item.name, "\n");
  }
}

}  // namespace

BuildFacts find_build_facts(const EnvironmentList& environment) {
  BuildFacts facts;
  std::string found;
  for (const std::string& python : pythons_to_ask()) {
    const auto output =
        run_program({python, "-c", kAskPython}, environment, Deadline::after(kPythonTime));
    if (output && output->status.is_success()) {
      found = concat(" ", trim(output->out), " ");
      facts.notes.push_back(concat(python, " has:", found));
      break;
    }
    facts.notes.push_back(
        concat("cannot ask ", python, ": ",
               output ? std::string(trim(output->err)) : output.status().message()));
  }
  const auto has = [&](std::string_view module) {
    return found.find(concat(" ", module, " ")) != std::string::npos;
  };
  const CommandPath mpirun =
      find_command("mpirun", get_variable(environment, "PATH").value_or("/usr/bin:/bin"));
  const bool has_mpi = mpirun.problem == CommandProblem::kNone;
  facts.notes.push_back(has_mpi ? concat("mpirun is ", mpirun.path) : mpirun.reason);
  const GlooFacts gloo = find_gloo(environment, pythons_to_ask());
  facts.notes.push_back(concat(gloo.is_available ? "Gloo is " : "no Gloo: ", gloo.text));
  // Native, horovod's own engine, needs nothing that could be missing; --gloo works without Gloo.
  facts.frameworks = {
      {"TensorFlow", has("tensorflow")}, {"PyTorch", has("torch")}, {"MXNet", has("mxnet")}};
  facts.controllers = {{"MPI", has_mpi}, {"Gloo", gloo.is_available}, {"Native", true}};
  const GpuFacts gpus = find_gpus(environment, pythons_to_ask());
  const bool has_gpus = gpus.device_count > 0;
  facts.notes.push_back(concat("GPUs: ", gpus.driver_text));
  facts.notes.push_back(concat("NCCL: ", gpus.nccl_text));
  // NCCL is of use where there is a GPU.
  facts.operations = {{"NCCL", has_gpus && gpus.has_nccl},
                      {"GPU memory", has_gpus},
                      {"DDL", false},
                      {"CCL", false},
                      {"MPI", has_mpi},
                      {"Gloo", gloo.is_available},
                      {"Native", true}};
  return facts;
}

std::string check_build_text(const BuildFacts& facts) {
  std::string text = concat("Horovod v", version_text(), ":\n");
  append_section(text, "Available Frameworks", facts.frameworks);
  append_section(text, "Available Controllers", facts.controllers);
  append_section(text, "Available Tensor Operations", facts.operations);
  return text;
}

}  // namespace hvd::launch
