// lookout.h - what this rank looks for while nothing moves: failures of the job, words in shared
// memory that are not what they should be, ranks that leave or stall, streams that broke. Ends
// operations when there is a reason to. Never blocks.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/engine_role.h"
#include "base/status.h"
#include "engine/health/failure.h"
#include "engine/health/peer_processes.h"
#include "engine/health/role_check.h"
#include "engine/health/stall_monitor.h"
#include "engine/operation/flight.h"
#include "engine/operation/pending.h"
#include "engine/operation/statistics.h"
#include "engine/sets/met_sets.h"
#include "engine/sets/process_sets.h"
#include "engine/sets/surroundings.h"

namespace hvd::engine {

// What the lookout watches and tells; all of it outlives it.
struct LookoutView {
  const Surroundings& surroundings;
  mirror::Mirror* mirror;  // null: one host
  EngineRole& role;
  SubmitLock& submit_lock;
  ProcessSets& sets;
  MetSets& met_sets;
  Failure& failure;
  const Flight& flight;
  const Pending& pending;
  Statistics& statistics;
};

class Lookout {
 public:
  explicit Lookout(const LookoutView& view)
      : view_(view),
        processes_(*view.surroundings.job),
        role_check_(job().mine().role, view.role, view.submit_lock),
        stall_(view.surroundings.settings) {}

  PeerProcesses& processes() { return processes_; }

  // ---- role ----
  // A look at everything; what it finds has been told to Failure.
  void look() HVD_REQUIRES(engine_role);
  // The same, unless the last look is recent. For who is woken again and again: peers that are
  // themselves in trouble ring so often that no sleep ever ends by itself.
  void look_if_due() HVD_REQUIRES(engine_role) {
    if (std::chrono::steady_clock::now() - looked_at_ >= kLongestBetweenLooks) look();
  }
  // What a channel or anybody else has found ends what is pending.
  void handle_failures() HVD_REQUIRES(engine_role);
  void fail_everything(const Status& status) HVD_REQUIRES(engine_role);
  bool is_busy() const HVD_REQUIRES(engine_role);
  // See Channel::streams_are_late().
  bool streams_are_late() HVD_REQUIRES(engine_role);
  bool waits_for_somebody_who_left() const HVD_REQUIRES(engine_role);

  // ---- any thread ----
  // True once.
  bool begin_shutdown() { return !is_shut_down_.exchange(true); }
  bool is_shut_down() const { return is_shut_down_.load(std::memory_order_relaxed); }
  // Once a second, by hvd-watch: bits of the role word that nobody has set would keep everybody
  // out for ever.
  void check_role_word();
  // The rank is late, says a stall report: tells its process, if that asked for it.
  void signal_stalled(int rank);
  std::string recent_operations(size_t most) const {
    return view_.flight.describe(view_.surroundings.job->rank(), most);
  }

 private:
  Status check_words() HVD_REQUIRES(engine_role);
  void close_when_peers_leave() HVD_REQUIRES(engine_role);
  Status status_without(const Channel& channel) const HVD_REQUIRES(engine_role);
  int leaver_of(const Channel& channel) const;
  void check_streams(TimePoint now) HVD_REQUIRES(engine_role);
  void check_stalls(TimePoint now) HVD_REQUIRES(engine_role);
  void check_stalled_meetings(TimePoint now) HVD_REQUIRES(engine_role);
  // Logs a report, if it is this rank's to report. True: the limit was reached, the job has failed.
  bool act_on_stall(const StallReport& report, const std::vector<int32_t>& ranks, bool reports);
  void print_flight_record(const Status& status);
  const shm::Job& job() const { return *view_.surroundings.job; }
  int32_t rank() const { return view_.surroundings.rank(); }

  static constexpr Nanoseconds kLongestBetweenLooks = std::chrono::milliseconds(100);

  const LookoutView view_;
  PeerProcesses processes_;
  RoleCheck role_check_;
  StallMonitor stall_ HVD_GUARDED_BY(engine_role);
  TimePoint looked_at_ HVD_GUARDED_BY(engine_role) = {};
  Deadline leavers_deadline_ HVD_GUARDED_BY(engine_role) = Deadline::never();
  std::atomic<bool> is_shut_down_{false};
};

// Signals that a word of another process may ask for: not those that no handler can catch.
Status check_stall_signal(int32_t number);

}  // namespace hvd::engine
