// local_workers.h - the ranks of this host as processes: started, read from, signalled, seen to
// end. The launcher uses it for its own host, and the agent (agent.h) on every other one.
// One thread; never blocks.
#pragma once

#include <sys/types.h>

#include <deque>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/failure_note.h"
#include "base/fd.h"
#include "base/status.h"
#include "launch/os/descriptor_limit.h"
#include "launch/os/environment_list.h"
#include "launch/os/exit_status.h"
#include "launch/os/poll_set.h"
#include "launch/os/signals.h"
#include "launch/ranks/guard.h"
#include "launch/ranks/worker_events.h"

namespace hvd::launch {

struct LocalRank {
  int32_t rank;
  EnvironmentList environment;
};

struct LocalStart {
  std::string program;               // path of the executable
  std::vector<std::string> command;  // its argv
  std::vector<LocalRank> ranks;
  std::string key;      // of the job
  int first_stdin = 0;  // what rank 0 reads; the others read nothing
  // Of an elastic job: `rank` is the number of a worker, which has a socket to the launcher, and
  // more may be started later.
  bool is_elastic = false;
};

class LocalWorkers {
 public:
  // All of them or none: if a rank cannot be started, those before it are killed.
  static Result<LocalWorkers> start(const LocalStart& request, const Signals& signals,
                                    const DescriptorLimit& limit);

  // One more, later.
  Status add(const LocalRank& rank, const Signals& signals, const DescriptorLimit& limit);

  // A message for an elastic worker; kept until it reads.
  void send_message(int32_t rank, std::string bytes);
  // Elastic workers finish their step and go. False: they were asked before.
  bool ask_to_leave(TimePoint now);
  // One worker alone: from here on its end is our doing.
  void kill_one(int32_t rank);

  // For whoever must know what was started.
  void report_started(WorkerEvents& events) const;

  // Waits for the output of the ranks, as far as `may_read` lets it.
  void watch(PollSet& polls, WorkerEvents& events,
             const std::function<bool(OutputStream)>& may_read);

  // A child of this process has ended. None: it was none of the ranks.
  std::optional<WorkerExit> take_end(pid_t pid, int wait_status, WorkerEvents& events);

  // Before the ranks are asked to end: from here on an end is our doing, except of those that are
  // on their way out already.
  void note_asked();
  void signal_groups(std::initializer_list<int> numbers) const;

  // After ends were taken: groups that are empty need nothing more.
  void forget_empty_groups();
  // Every rank has ended, and whatever its group had to end too.
  bool is_everybody_gone() const;
  bool is_output_closed() const;
  // Takes what lies in the pipes now and closes them, although somebody may hold the other end.
  void close_output(WorkerEvents& events);

 private:
  struct Process {
    int32_t rank;
    pid_t pid;  // and process group
    UniqueFd out;
    UniqueFd err;
    UniqueFd note;                          // see failure_note.h
    UniqueFd channel = {};                  // of an elastic worker
    std::deque<std::string> messages = {};  // on their way into it
    bool was_asked = false;                 // it alone
    bool has_ended = false;
    bool group_is_ours = true;     // false: empty, or left alone because the rank ended well
    bool was_dying_first = false;  // on its way out before anybody was asked to end
    int exec_error = 0;
    std::optional<FailureNote> note_before = {};  // its note when it was asked to end
  };

  LocalWorkers(LocalStart request, std::deque<Process> processes, UniqueFd exec_failures,
               UniqueFd exec_reports, Guard guard)
      : request_(std::move(request)),
        processes_(std::move(processes)),
        exec_failures_(std::move(exec_failures)),
        exec_reports_(std::move(exec_reports)),
        guard_(std::move(guard)) {}

  struct Common;
  static Result<Process> start_rank(const LocalRank& rank, const Common& common);
  static Result<Common> make_common(const LocalStart& request, const Signals& signals,
                                    const DescriptorLimit& limit, int exec_reports);
  static void kill_all(const std::deque<Process>& processes);
  static bool read_message(Process& process, WorkerEvents& events);
  static void flush_messages(Process& process);
  static bool read_once(Process& process, OutputStream stream, WorkerEvents& events);
  void take_exec_failures();

  LocalStart request_;             // what all have in common; its ranks are those at the start
  std::deque<Process> processes_;  // stay where they are while others are added
  UniqueFd exec_failures_;         // read end; see spawn.h
  UniqueFd exec_reports_;          // write end, for those that are started later
  Guard guard_;
  bool was_asked_ = false;
  std::optional<TimePoint> asked_to_leave_at_ = {};
};

}  // namespace hvd::launch
