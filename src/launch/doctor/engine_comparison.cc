#include "launch/doctor/engine_comparison.h"

#include <sstream>

#include "base/parse.h"
#include "base/text.h"
#include "launch/os/run_program.h"
#include "launch/plan/mpi_command.h"

namespace hvd::launch {
namespace {

constexpr std::chrono::seconds kVersionTime{10};
constexpr std::chrono::seconds kJobTime{60};
// Below this difference it does not matter.
constexpr double kClearly = 1.1;

// MPIs frame what they say with lines of dashes.
std::string last_line_of(std::string_view text) {
  text = text.substr(0, text.find_last_not_of("-= \n\t\r") + 1);
  return std::string(trim(text.substr(text.rfind('\n') + 1)));
}

Result<std::string> compose(const Prepared& prepared, MpiImplementation implementation) {
  Options options = prepared.options;
  HVD_TRY_ASSIGN(const std::string program, own_executable());
  options.command = {program, "--measure-engines"};
  std::vector<HostSlots> hosts;
  for (const HostPlan& host : prepared.plan.hosts) hosts.push_back({host.name, 1});
  return mpi_command_line({.implementation = implementation,
                           .options = options,
                           .hosts = hosts,
                           .num_proc = static_cast<int32_t>(hosts.size()),
                           .environment = prepared.plan.environment});
}

Result<EngineComparison> run_job(const Prepared& prepared, MpiImplementation implementation) {
  HVD_TRY_ASSIGN(const std::string line, compose(prepared, implementation));
  HVD_TRY_ASSIGN(
      const ProgramOutput output,
      run_program({"/bin/sh", "-c", line}, prepared.plan.environment, Deadline::after(kJobTime)));
  if (!output.status.is_success()) {
    return precondition_error(concat("mpirun failed: ", last_line_of(output.err)));
  }
  return read_engine_times(output.out);
}

std::string time_text(Nanoseconds span) {
  const int64_t us = std::chrono::duration_cast<std::chrono::microseconds>(span).count();
  if (us < 10000) return concat(us, " us");
  return concat(us / 1000, " ms");
}

std::string line_of(std::string_view name, const EngineTimes& times) {
  return concat("  ", name, time_text(times.small), " for 4 KiB, ", time_text(times.large),
                " for 16 MiB\n");
}

std::string verdict(const EngineComparison& c) {
  const double ratio =
      static_cast<double>(c.mpi.large.count()) / static_cast<double>(c.own.large.count());
  if (ratio > kClearly) {
    return "  our own link is quicker here: start with horovodrun, or under mpirun set "
           "HOROVOD_CPU_OPERATIONS=native\n";
  }
  if (ratio < 1 / kClearly) {
    return "  MPI is quicker here: start with horovodrun --mpi or mpirun\n";
  }
  return "  both are about as quick here\n";
}

}  // namespace

Result<EngineComparison> read_engine_times(std::string_view output) {
  EngineComparison comparison;
  bool has_mpi = false, has_own = false;
  std::istringstream lines{std::string(output)};
  for (std::string line; std::getline(lines, line);) {
    // mpirun may put the rank in front of it.
    const size_t at = line.find("engine ");
    if (at == line.npos) continue;
    std::istringstream words(line.substr(at));
    std::string word, name;
    int64_t small = 0, large = 0;
    if (!(words >> word >> name >> small >> large) || small <= 0 || large <= 0) continue;
    const EngineTimes times{Nanoseconds(small), Nanoseconds(large)};
    if (name == "mpi") {
      comparison.mpi = times;
      has_mpi = true;
    } else if (name == "native") {
      comparison.own = times;
      has_own = true;
    }
  }
  if (has_mpi && has_own) return comparison;
  return precondition_error(
      concat("no figures in what the job printed: '", last_line_of(output), "'"));
}

std::string describe(const EngineComparison& comparison) {
  std::string text = "\nallreduce between these hosts, one rank on each, under mpirun\n";
  if (!comparison.failure.empty())
    return text + concat("  not compared: ", comparison.failure, "\n");
  text += line_of("own link  ", comparison.own);
  text += line_of("MPI       ", comparison.mpi);
  return text + verdict(comparison);
}

std::optional<EngineComparison> compare_engines(const Prepared& prepared) {
  if (prepared.plan.hosts.size() < 2) return std::nullopt;
  const auto version = run_program({"mpirun", "--version"}, prepared.plan.environment,
                                   Deadline::after(kVersionTime));
  if (!version) return std::nullopt;
  const auto implementation = recognise_mpi(concat(version->out, version->err));
  if (!implementation) return std::nullopt;  // the facts of the host say so
  Result<EngineComparison> comparison = run_job(prepared, *implementation);
  if (comparison) return *std::move(comparison);
  return EngineComparison{.failure = comparison.status().message()};
}

}  // namespace hvd::launch
