#include "launch/launch.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "base/version.h"
#include "launch/agent/agent.h"
#include "launch/agent/join.h"
#include "launch/doctor/check_build.h"
#include "launch/doctor/doctor.h"
#include "launch/job/decide.h"
#include "launch/job/run_job.h"
#include "launch/link/meeting_place.h"
#include "launch/options/help.h"
#include "launch/options/launch_settings.h"
#include "launch/os/command_path.h"
#include "launch/os/exit_status.h"
#include "launch/output/flush.h"
#include "launch/plan/foreign_launch.h"
#include "launch/plan/prepare.h"

namespace hvd::launch {
namespace {

// SIGTERM is blocked by then: whoever does not read our last lines must not hold us up for ever.
constexpr std::chrono::seconds kFlushTimeOfJoined{5};

int code(LauncherExit exit) { return static_cast<int>(exit); }

// A descriptor from 0 to 2 that is closed would be given to the next pipe, and a worker's standard
// output would then be something else's.
void open_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) {
      [[maybe_unused]] const int opened = ::open("/dev/null", O_RDWR);  // takes the lowest: fd
    }
  }
}

size_t help_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultHelpWidth;
  return std::min<size_t>(size.ws_col, kDefaultHelpWidth);
}

int print(Terminal& terminal, std::string_view text) {
  terminal.out().append(text);
  flush_all(terminal, nullptr, Deadline::never());
  return code(LauncherExit::kSuccess);
}

int fail(Terminal& terminal, LauncherExit exit, std::string_view reason) {
  terminal.err().append(concat("horovodrun: ", reason, "\n"));
  if (exit == LauncherExit::kUsage) {
    terminal.err().append("horovodrun: 'horovodrun --help' shows the options\n");
  }
  flush_all(terminal, nullptr, Deadline::never());
  return code(exit);
}

int fail(Terminal& terminal, const Status& status) {
  const bool is_mistake = status.code() == StatusCode::kInvalidArgument;
  return fail(terminal, is_mistake ? LauncherExit::kUsage : LauncherExit::kLauncherFailed,
              status.message());
}

int check_build(const Options& options, const EnvironmentList& environment, Terminal& terminal) {
  const BuildFacts facts = find_build_facts(environment);
  if (options.verbose) {
    for (const std::string& note : facts.notes) {
      terminal.err().append(concat("horovodrun: ", note, "\n"));
    }
  }
  return print(terminal, check_build_text(facts));
}

// Of --join, on a host that is not the one to launch; nothing if it turns out to be that one.
std::optional<int> join(const Options& options, MeetingPlace place,
                        const EnvironmentList& environment, Terminal& terminal) {
  const Result<LaunchSettings> settings = read_launch_settings(environment);
  if (!settings) return fail(terminal, settings.status());
  const auto timeout = options.start_timeout ? options.start_timeout : settings->start_timeout;
  const Result<std::optional<int>> exit_code =
      run_join({.place = std::move(place),
                .key_file = options.elastic.key_file,
                .slots = options.elastic.slots_per_host.value_or(1),
                .timeout = timeout.value_or(kDefaultStartTimeout)},
               environment, [&terminal](std::string_view text) {
                 terminal.err().append(concat("horovodrun: ", text, "\n"));
                 terminal.flush_some();
               });
  if (!exit_code) return fail(terminal, exit_code.status());
  flush_all(terminal, nullptr, Deadline::after(kFlushTimeOfJoined));
  return *exit_code;
}

// The start of a job: here, by joining one, or by becoming another launcher.
int launch(Options options, const EnvironmentList& environment, Terminal& terminal) {
  const Request request = options.request;
  if (!options.elastic.join.empty()) {
    Result<MeetingPlace> place = parse_meeting_place(options.elastic.join);
    if (!place) return fail(terminal, place.status());
    const Result<std::string> hostname = own_hostname();
    if (!hostname) return fail(terminal, hostname.status());
    const bool is_here = locate_hosts({{place->host, 1}}, *hostname).front().is_local;
    if (request == Request::kRun && !is_here) {
      const auto exit_code = join(options, *std::move(place), environment, terminal);
      if (exit_code) return *exit_code;
    }
  }
  SayWaiting say_waiting;
  if (request == Request::kRun) {
    say_waiting = [&terminal](const std::string& text) {
      terminal.err().append(concat("horovodrun: ", text, "\n"));
      flush_all(terminal, nullptr, Deadline::after(kFlushTimeOfJoined));
    };
  }
  const Result<Prepared> prepared = prepare_job(std::move(options), environment, say_waiting);
  if (!prepared) return fail(terminal, prepared.status());
  const Plan& plan = prepared->plan;
  const bool is_elastic = prepared->options.elastic.is_requested();
  std::optional<ForeignLaunch> foreign;
  if (!is_elastic) {
    auto composed = compose_foreign_launch(
        {.options = prepared->options, .found = prepared->found, .plan = plan});
    if (!composed) return fail(terminal, composed.status());
    foreign = *std::move(composed);
  }
  if (request == Request::kPlanJson) {
    return print(terminal, plan_json(prepared->options, plan, foreign));
  }
  for (const std::string& warning : prepared->options.warnings) {
    terminal.err().append(concat("horovodrun: warning: ", warning, "\n"));
  }
  if (foreign) {
    if (prepared->options.verbose) {
      terminal.err().append(concat("horovodrun: ", foreign->command_line, "\n"));
    }
    flush_all(terminal, nullptr, Deadline::never());
    return fail(terminal, become_foreign_launcher(*foreign, plan.environment));
  }
  // Other hosts look for themselves. Elastic workers may be started here later.
  const bool is_local = std::any_of(plan.hosts.begin(), plan.hosts.end(),
                                    [](const HostPlan& host) { return host.is_local; });
  const CommandPath found =
      !is_local && !is_elastic
          ? CommandPath{}
          : find_command(prepared->options.command.front(),
                         get_variable(environment, "PATH").value_or("/usr/bin:/bin"));
  const CommandPath program =
      is_local || found.problem == CommandProblem::kNone ? found : CommandPath{};
  if (program.problem == CommandProblem::kNotFound) {
    return fail(terminal, LauncherExit::kNotFound, program.reason);
  }
  if (program.problem == CommandProblem::kNotExecutable) {
    return fail(terminal, LauncherExit::kNotExecutable, program.reason);
  }
  const Result<int> exit_code = run_job(*prepared, program.path, terminal);
  return exit_code.is_ok() ? exit_code.value() : fail(terminal, exit_code.status());
}

// Hosts are not looked at, and nothing is asked of other programs: a job that cannot be started
// may still be talked about.
int print_parsed(ParsedWords parsed, const EnvironmentList& environment, Terminal& terminal) {
  if (parsed.values.is_ok()) {
    if (const Status known = check_num_proc(parsed.options, environment); !known) {
      return fail(terminal, known);
    }
    parsed.values = read_config_file(parsed.options);
  }
  return print(terminal, parse_json(parsed.options, parsed.values));
}

int decide(const Options& options, const EnvironmentList& environment, Terminal& terminal) {
  const Result<int> exit_code = run_decide(options, environment);
  return exit_code.is_ok() ? exit_code.value() : fail(terminal, exit_code.status());
}

int doctor(Options options, const EnvironmentList& environment, Terminal& terminal) {
  if (options.hosts.empty() && options.hostfile.empty() && options.num_proc == 0) {
    options.num_proc = 1;  // this machine, or what the batch system says
  }
  const Result<Prepared> prepared = prepare_doctor(std::move(options), environment);
  if (!prepared) return fail(terminal, prepared.status());
  const Result<int> exit_code = run_doctor(*prepared, terminal);
  return exit_code.is_ok() ? exit_code.value() : fail(terminal, exit_code.status());
}

}  // namespace

int run_launcher(std::span<const std::string> arguments, const EnvironmentList& environment) {
  open_standard_descriptors();
  Terminal terminal(STDOUT_FILENO, STDERR_FILENO);
  Result<ParsedWords> parsed = parse_words(arguments);
  if (!parsed) return fail(terminal, parsed.status());
  Options& options = parsed->options;
  if (options.request == Request::kParseJson) {
    return print_parsed(*std::move(parsed), environment, terminal);
  }
  if (!parsed->values) return fail(terminal, parsed->values);
  switch (options.request) {
    case Request::kHelp:
      return print(terminal, help_text(help_width()));
    case Request::kVersion:
      return print(terminal, concat(version_text(), "\n"));
    case Request::kCheckBuild:
      return check_build(options, environment, terminal);
    case Request::kAgent:
      return run_agent(environment);
    case Request::kDecide:
      return decide(options, environment, terminal);
    case Request::kDoctor:
      return doctor(std::move(options), environment, terminal);
    case Request::kParseJson:
    case Request::kPlanJson:
    case Request::kRun:
      break;
  }
  return launch(std::move(options), environment, terminal);
}

}  // namespace hvd::launch
