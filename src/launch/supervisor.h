// supervisor.h - the event loop: forwards output, sees ranks end, ends the others.
// One thread. Blocks in poll() only, with a deadline whenever something could fail to come. What to
// do is decided elsewhere (exit_status.h, termination.h); this file does it.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "launch/console.h"
#include "launch/exit_status.h"
#include "launch/guard.h"
#include "launch/output_tail.h"
#include "launch/report.h"
#include "launch/signals.h"
#include "launch/stdin_pump.h"
#include "launch/termination.h"
#include "launch/worker_output.h"

namespace hvd::launch {

struct Worker {
  int32_t rank;
  pid_t pid;  // and process group
  TimePoint started_at;
  WorkerOutput out;
  WorkerOutput err;
  OutputTail tail;

  std::optional<ExitStatus> status;  // set when it has ended
  RankFate fate = RankFate::kRemains;
  TimePoint ended_at;
  int exec_error = 0;
  bool group_is_ours = true;     // false: empty, or left alone because the rank ended well
  bool was_dying_first = false;  // on its way out before anybody was asked to end
};

// The workers as they were started, and what belongs to all of them.
struct Job {
  std::vector<Worker> workers;  // by rank
  UniqueFd exec_failures;       // read end; see spawn.h
  std::optional<StdinPump> stdin_pump;
};

struct JobEnd {
  std::optional<int> signal;            // horovodrun was told to end
  std::optional<int32_t> first_failed;  // rank
};

class Supervisor {
 public:
  Supervisor(Job& job, Guard& guard, Terminal& terminal, const Signals& signals,
             Nanoseconds termination_grace);

  // Returns when every worker has ended (or could not be ended) and its output lies in the
  // terminal's queue.
  JobEnd run();

 private:
  void wait_for_events(Deadline deadline);
  void watch(int fd, short events, std::function<void()> handler);
  void watch_output(Worker& worker);
  void take_signals();
  void take_exec_failures();
  void reap(std::optional<pid_t> announced);
  void note_failure(std::span<const RankExit> exits, std::optional<int32_t> announced);
  void carry_out(TerminationAction action);
  void signal_groups(std::initializer_list<int> numbers);
  void stop_with_workers();
  void forget_empty_groups();
  bool is_everybody_gone() const;
  bool is_output_closed() const;
  void drain_output();
  std::optional<int32_t> settled_first_failure() const;
  Worker* find_worker(pid_t pid);

  Job& job_;
  Guard& guard_;
  Terminal& terminal_;
  const Signals& signals_;
  Termination termination_;
  std::optional<int32_t> first_failed_;
  std::vector<pollfd> polled_;
  std::vector<std::function<void()>> handlers_;  // of polled_, by index
};

}  // namespace hvd::launch
