#include "launch/job/run_job.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "launch/job/audit.h"
#include "launch/job/bring_up.h"
#include "launch/job/elastic_job.h"
#include "launch/job/fleet_start.h"
#include "launch/job/supervisor.h"
#include "launch/output/flush.h"

namespace hvd::launch {
namespace {

// After a signal nobody waits long for a reader that does not read.
constexpr Nanoseconds kFlushTimeAfterSignal = std::chrono::seconds(1);
constexpr size_t kReportedLines = 10;
constexpr Nanoseconds kFarewellTimeOfHosts = std::chrono::seconds(1);
// As many hosts as may join (JoinedHosts).
constexpr int32_t kManyWorkers = 4096;

// Workers of an elastic job that come later, each perhaps on a host of its own.
int32_t later_workers_and_hosts(const Options& options) {
  if (!options.elastic.is_requested()) return 0;
  return 2 * std::min(options.elastic.max_num_proc.value_or(kManyWorkers), kManyWorkers);
}

void say_started(const Plan& plan, const std::vector<std::string>& command, Terminal& terminal) {
  for (const HostPlan& host : plan.hosts) {
    terminal.err().append(concat("horovodrun: ", host.ranks.size() == 1 ? "rank " : "ranks ",
                                 join_text(host.ranks), " of ", command.front(), " on host ",
                                 host.name, host.is_local ? "" : " by ssh", "\n"));
  }
}

void say_ended(const Fleet& fleet, Terminal& terminal) {
  terminal.err().start_line();
  for (const RankState& state : fleet.ranks) {
    if (!state.status) continue;
    terminal.err().append(concat("horovodrun: rank ", state.rank, " (pid ", state.pid, ", host ",
                                 state.host, ") ", describe(*state.status), " after ",
                                 describe_span(state.ended_at - state.started_at), "\n"));
  }
}

// Whenever a port was open; without one on request.
void say_audit(const Prepared& prepared, const Fleet& fleet, Terminal& terminal) {
  const net::Visitors* visitors = fleet.store ? &fleet.store->visitors() : nullptr;
  const net::Visitors* joining = fleet.joined ? &fleet.joined->visitors() : nullptr;
  if (!prepared.options.verbose && visitors == nullptr && joining == nullptr) return;
  terminal.err().start_line();
  terminal.err().append(
      audit_line({.visitors = visitors,
                  .joining = joining,
                  .tls = get_variable(prepared.plan.environment, "HOROVOD_TLS").value_or("")}));
}

void say_lost_files(const Fleet& fleet, Terminal& terminal) {
  for (const RankState& state : fleet.ranks) {
    for (const WorkerOutput* output : {&state.out, &state.err}) {
      if (output->file_error() == 0) continue;
      const std::string what = concat("the output file of rank ", state.rank, " is incomplete");
      terminal.err().start_line();
      terminal.err().append(
          concat("horovodrun: ", errno_status(what, output->file_error()).message(), "\n"));
    }
  }
}

int report_lost_host(const Fleet& fleet, size_t index, Terminal& terminal) {
  const RemoteHost& host = fleet.remote[index];
  LostHost lost{.host = host.plan().name, .ranks = {}, .why = host.why(), .after = {}};
  std::vector<RankFate> others;
  for (const RankState& state : fleet.ranks) {
    if (state.host == lost.host && state.fate == RankFate::kLost) {
      lost.ranks.push_back(state.rank);
      lost.after = state.ended_at - state.started_at;
    } else {
      others.push_back(state.fate);
    }
  }
  terminal.err().append(lost_host_report(lost, others));
  return host.exit_code();
}

int report_failed_rank(const Fleet& fleet, const Culprit& culprit, Terminal& terminal) {
  std::vector<RankFate> others;
  for (const RankState& state : fleet.ranks) {
    if (state.rank != culprit.rank) others.push_back(state.fate);
  }
  const RankState& failed = fleet.ranks[static_cast<size_t>(culprit.rank)];
  terminal.err().append(failure_report({.rank = failed.rank,
                                        .pid = failed.pid,
                                        .host = failed.host,
                                        .status = failed.status.value_or(ExitStatus{}),
                                        .after = failed.ended_at - failed.started_at,
                                        .last_lines = failed.tail.last_lines(kReportedLines),
                                        .reason = culprit.reason,
                                        .witness = culprit.witness},
                                       others));
  return culprit.exit_code;
}

int report_end(const Fleet& fleet, const JobEnd& end, Terminal& terminal) {
  if (end.elastic && end.elastic->exit_code != 0) {
    terminal.err().start_line();
    terminal.err().append(concat("horovodrun: the job has failed: ", end.elastic->reason, "\n"));
  }
  if (end.elastic) return end.elastic->exit_code;
  if (!end.lost_host && !end.culprit && !end.signal) {
    return static_cast<int>(LauncherExit::kSuccess);
  }
  terminal.err().start_line();
  if (end.lost_host) return report_lost_host(fleet, *end.lost_host, terminal);
  if (end.culprit) return report_failed_rank(fleet, *end.culprit, terminal);
  std::vector<RankFate> fates;
  for (const RankState& state : fleet.ranks) fates.push_back(state.fate);
  const TimePoint now = Clock::steady().now();
  const Nanoseconds after = now - (fleet.ranks.empty() ? now : fleet.ranks.front().started_at);
  terminal.err().append(signal_report(*end.signal, after, fates));
  return 128 + *end.signal;
}

int report_not_started(const BringUpEnd& end, Terminal& terminal) {
  if (end.signal) {
    terminal.err().append(concat("horovodrun: ended by ", describe_signal(*end.signal),
                                 " before all hosts were up; nothing was started\n"));
    return 128 + *end.signal;
  }
  terminal.err().append(
      concat("horovodrun: ", end.failure->text, "\nhorovodrun: nothing was started\n"));
  return end.failure->exit_code;
}

// For hosts that have joined; the launcher's own lines are longer.
std::string describe_end(const JobEnd& end) {
  if (end.signal) return concat("the launcher was ended by ", describe_signal(*end.signal));
  if (end.elastic && end.elastic->exit_code != 0) {
    return concat("the job has failed: ", end.elastic->reason);
  }
  return "the workers have finished";
}

Result<int> run_elastic(const Prepared& prepared, FleetStart& start, const Signals& signals,
                        const DescriptorLimit& limit, Terminal& terminal) {
  HVD_TRY_ASSIGN(ElasticLog log, ElasticLog::open(prepared.options.elastic.log_file));
  ElasticJob job(prepared, start, terminal, signals, limit, std::move(log));
  Fleet& fleet = start.fleet();
  const JobEnd end =
      Supervisor(fleet, terminal, signals, prepared.settings.termination_grace, &job).run();
  if (prepared.options.verbose) say_ended(fleet, terminal);
  say_audit(prepared, fleet, terminal);
  say_lost_files(fleet, terminal);
  terminal.err().start_line();
  terminal.err().append(job.summary());
  const int exit_code = report_end(fleet, end, terminal);
  if (fleet.joined) {
    fleet.joined->farewell(exit_code, describe_end(end), Deadline::after(kFarewellTimeOfHosts));
  }
  flush_all(terminal, &signals,
            end.signal ? Deadline::after(kFlushTimeAfterSignal) : Deadline::never());
  return exit_code;
}

}  // namespace

Result<int> run_job(const Prepared& prepared, const std::string& program, Terminal& terminal) {
  const Plan& plan = prepared.plan;
  HVD_TRY_ASSIGN(const Signals signals, Signals::take_over());
  HVD_TRY_ASSIGN(
      const DescriptorLimit limit,
      DescriptorLimit::make_room(static_cast<int32_t>(plan.workers.size() + plan.hosts.size()),
                                 later_workers_and_hosts(prepared.options)));
  // What a worker leaves behind becomes our child when the worker ends: so we see when a process
  // group is empty instead of asking again and again.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);

  const bool is_verbose = prepared.options.verbose;
  if (is_verbose) say_started(plan, prepared.options.command, terminal);
  HVD_TRY_ASSIGN(FleetStart start, FleetStart::prepare(prepared, program, signals, limit));
  if (prepared.options.elastic.is_requested()) {
    return run_elastic(prepared, start, signals, limit, terminal);
  }
  if (const Status connected = start.connect(); !connected) {
    say_audit(prepared, start.fleet(), terminal);
    return connected;
  }
  const Progress progress = ::isatty(STDERR_FILENO) == 1 ? Progress::kShown : Progress::kSilent;
  const BringUpEnd up =
      bring_up(start.fleet().remote, signals, terminal, plan.start_timeout, progress);
  if (up.signal || up.failure) {
    say_audit(prepared, start.fleet(), terminal);
    const int exit_code = report_not_started(up, terminal);
    flush_all(terminal, &signals, Deadline::after(kFlushTimeAfterSignal));
    return exit_code;
  }
  HVD_TRY(start.go());

  Fleet& fleet = start.fleet();
  const JobEnd end =
      Supervisor(fleet, terminal, signals, prepared.settings.termination_grace).run();

  if (is_verbose) say_ended(fleet, terminal);
  say_audit(prepared, fleet, terminal);
  say_lost_files(fleet, terminal);
  const int exit_code = report_end(fleet, end, terminal);
  flush_all(terminal, &signals,
            end.signal ? Deadline::after(kFlushTimeAfterSignal) : Deadline::never());
  return exit_code;
}

}  // namespace hvd::launch
