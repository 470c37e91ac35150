#include "launch/doctor/gpu_trial.h"

#include <algorithm>
#include <sstream>

#include "base/parse.h"
#include "base/text.h"
#include "launch/doctor/gloo_facts.h"
#include "launch/doctor/gpu_facts.h"
#include "launch/os/run_program.h"

namespace hvd::launch {
namespace {

constexpr std::chrono::seconds kTrialTime{120};  // first contacts of drivers and of NCCL are slow
constexpr int kMostRanks = 8;
// How the engine begins the reason in its warning.
constexpr std::string_view kDetour = "slower than NCCL: ";

std::string last_words(std::string_view text) {
  text = trim(text);
  return std::string(text.substr(text.rfind('\n') + 1));
}

Result<std::vector<std::string>> compose_trial(const Options& options, const GpuFacts& gpus) {
  HVD_TRY_ASSIGN(const std::string program, own_executable());
  std::vector<std::string> command = {program};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) command.insert(command.end(), {option, value});
  };
  const bool names_hosts = !options.hosts.empty() || !options.hostfile.empty();
  add("-np", concat(names_hosts ? options.num_proc : std::clamp(gpus.device_count, 2, kMostRanks)));
  add("-H", options.hosts);
  add("--hostfile", options.hostfile);
  add("-p", options.ssh.port ? concat(*options.ssh.port) : "");
  add("-i", options.ssh.identity_file);
  command.insert(command.end(), {program, "--measure-gpus"});
  return command;
}

Result<GpuTrial> run_trial(const Prepared& prepared) {
  EnvironmentList environment = prepared.plan.environment;
  const GpuFacts gpus = find_gpus(environment, pythons_to_ask());
  if (gpus.device_count == 0) return precondition_error(gpus.driver_text);
  if (!gpus.nccl_path.empty()) set_variable(environment, "HOROVOD_NCCL_LIB", gpus.nccl_path);
  HVD_TRY_ASSIGN(const auto command, compose_trial(prepared.options, gpus));
  HVD_TRY_ASSIGN(const ProgramOutput output,
                 run_program(command, environment, Deadline::after(kTrialTime)));
  if (!output.status.is_success())
    return precondition_error(concat("the job failed: ", last_words(output.err)));
  return read_gpu_trial(output.out, output.err);
}

std::string span_text(Nanoseconds span) {
  const int64_t us = std::chrono::duration_cast<std::chrono::microseconds>(span).count();
  return us < 10000 ? concat(us, " us") : concat(us / 1000, " ms");
}

}  // namespace

Result<GpuTrial> read_gpu_trial(std::string_view out, std::string_view err) {
  GpuTrial trial;
  const size_t at = out.find("gpus ");
  std::istringstream words(std::string(at == out.npos ? "" : out.substr(at)));
  std::string word;
  int64_t small = 0, large = 0;
  if (!(words >> word >> trial.rank_count >> small >> large) || small <= 0 || large <= 0) {
    return precondition_error(
        concat("no figures in what the job printed: '", last_words(out), "'"));
  }
  trial.small = Nanoseconds(small);
  trial.large = Nanoseconds(large);
  if (const size_t why = err.find(kDetour); why != err.npos) {
    const std::string_view rest = err.substr(why + kDetour.size());
    trial.detour = std::string(rest.substr(0, rest.find('\n')));
  }
  return trial;
}

std::string describe(const GpuTrial& trial) {
  std::string text = "\nallreduce in the memory of GPUs\n";
  if (!trial.failure.empty()) return text + concat("  no   ", trial.failure, "\n");
  text +=
      concat("  ok   ", trial.rank_count, " ranks, ",
             trial.detour.empty() ? "by NCCL: " : "through host memory: ", span_text(trial.small),
             " for 4 KiB, ", span_text(trial.large), " for 16 MiB; every element is right\n");
  if (!trial.detour.empty()) text += concat("  !!   not by NCCL: ", trial.detour, "\n");
  return text;
}

GpuTrial try_gpus(const Prepared& prepared) {
  Result<GpuTrial> trial = run_trial(prepared);
  if (trial) return *std::move(trial);
  return GpuTrial{.failure = trial.status().message()};
}

}  // namespace hvd::launch
