// supervisor.h - the event loop: forwards output, sees ranks end, ends the others.
// One thread. Blocks in poll() only, with a deadline whenever something could fail to come. What to
// do is decided elsewhere (culprit.h, exit_status.h, termination.h); this file does it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "launch/job/culprit.h"
#include "launch/job/elastic_job.h"
#include "launch/job/fleet.h"
#include "launch/job/report.h"
#include "launch/os/exit_status.h"
#include "launch/os/poll_set.h"
#include "launch/os/signals.h"
#include "launch/output/console.h"
#include "launch/ranks/termination.h"

namespace hvd::launch {

struct JobEnd {
  std::optional<int> signal;               // horovodrun was told to end
  std::optional<Culprit> culprit;          // a rank failed
  std::optional<size_t> lost_host;         // index into Fleet::remote; then it is the first cause
  std::optional<ElasticEnd> elastic = {};  // of an elastic job, unless a signal ended it
};

class Supervisor final : private WorkerEvents {
 public:
  Supervisor(Fleet& fleet, Terminal& terminal, const Signals& signals,
             Nanoseconds termination_grace, ElasticJob* elastic = nullptr);

  // Returns when every rank has ended (or could not be ended) and its output lies in the terminal's
  // queue.
  JobEnd run();

 private:
  void on_started(int32_t rank, int32_t pid) override;
  void on_output(int32_t rank, OutputStream stream, std::string_view bytes) override;
  void on_output_end(int32_t rank, OutputStream stream) override;
  void on_exit(const WorkerExit& exit) override;
  void on_file(const FilePiece& piece) override;
  void on_message(int32_t rank, std::string_view bytes) override;

  void turn(Deadline deadline);
  void watch_output();
  void watch_input();
  void forward_input();
  void take_signals();
  void reap(std::optional<pid_t> announced);
  void note_exits();
  void note_lost_hosts();
  void note_elastic();
  void lose(size_t host);
  void begin_ending();
  void carry_out(TerminationAction action);
  void signal_everybody(AgentSignal signal);
  void stop_with_workers();
  bool is_everybody_gone() const;
  void drain_output();
  Deadline next_deadline() const;
  std::vector<RankEnd> ends() const;
  RankState& state_of(int32_t rank) { return fleet_.ranks[static_cast<size_t>(rank)]; }

  Fleet& fleet_;
  Terminal& terminal_;
  const Signals& signals_;
  ElasticJob* const elastic_;  // null: the number of workers is fixed
  Termination termination_;
  PollSet polls_;
  std::vector<RankExit> exits_;          // seen in this turn, not yet judged
  std::optional<int32_t> announced_;     // of those, whose end the kernel told first
  std::optional<int32_t> first_failed_;  // as far as it was seen
  std::optional<TimePoint> failed_at_;   // when
  std::optional<size_t> lost_host_;      // the first cause, if it is a host
  std::vector<bool> is_loss_noted_;      // by remote host
  bool has_input_ended_ = false;
};

}  // namespace hvd::launch
