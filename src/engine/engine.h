// engine.h - the engine of one rank: channels, who steps them, waiting, failure, life cycle.
//
// Threads of a rank
//   callers      submit under the submit lock; a caller that waits takes the engine role and
//   drives. background   (hvd-engine) drives what nobody waits for: submissions that ask for it,
//   and agreed large work whose peers are
//                stuck ("late ring"). Parked otherwise.
//   net          (hvd-net, jobs on several hosts) looks after the streams while nobody drives.
//   watch        (hvd-watch) sleeps on the peers' process descriptors; ticks once a second:
//   heartbeat, frozen peers, stalls.
// Failure has one shape: the first cause becomes one Status for everything pending and for every
// later call.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/failure_note.h"
#include "base/interrupt.h"
#include "base/settings.h"
#include "base/status.h"
#include "base/thread_annotations.h"
#include "collective/gloo/domain.h"
#include "engine/channel/channel.h"
#include "engine/drive/tuner.h"
#include "engine/health/peer_processes.h"
#include "engine/health/stall_monitor.h"
#include "engine/health/watch.h"
#include "engine/operation/handle_table.h"
#include "engine/operation/prepared.h"
#include "engine/sets/set_changes.h"
#include "engine/sets/set_registry.h"
#include "mirror/net_thread.h"
#include "net/key.h"
#include "topology/hosts.h"
#include "topology/topology.h"
#include "trace/timeline.h"
#include "tune/axes.h"

namespace hvd::engine {

// Marks the names between hosts of sets that their members opened among themselves.
inline constexpr uint32_t kMetWireId = 1u << 31;

// The name of barriers in the tables; no tensor of a user can have it by accident.
inline constexpr std::string_view kBarrierName = "<barrier>";

struct EngineOptions {
  topology::Topology topology;
  Settings settings;
  uint64_t epoch = 1;
  std::vector<std::vector<int32_t>> process_sets;  // static ones
  std::unique_ptr<shm::Job> job;  // given by tests; otherwise the engine meets its peers
  // A job on several hosts: who runs where, and how to reach them.
  topology::HostMap hosts;
  std::unique_ptr<net::Mesh> mesh;
  std::unique_ptr<collective::gloo::Domain> gloo;  // null: it does not carry the data
  // Of the job, if it has one: makes the names of this host's sockets ones that nobody can guess.
  std::optional<net::Key> host_secret;

  std::vector<int> ranks_here() const;  // empty: all

  // Ends the wait for the other ranks early; no look: nothing does.
  Interrupt interrupt = {};
};

class Engine final : public ChannelHost,
                     public WatchHost,
                     public mirror::MirrorHost,
                     public mirror::NetThreadHost {
 public:
  // May block until all ranks have come.
  static Result<std::unique_ptr<Engine>> start(EngineOptions options);
  ~Engine() override;

  const topology::Topology& topology() const { return topology_; }
  uint64_t number() const { return number_; }  // among the engines of this process
  // Lets agreed operations finish, fails the rest, tells the others. May block up to the deadline.
  // Idempotent.
  void shutdown(Deadline deadline)
      HVD_NO_THREAD_SAFETY_ANALYSIS;  // holds the role or not, as it got it

  // ---- submissions; set is a process set id ----
  Result<uint64_t> submit(int32_t set, const Submission& submission);
  Status run(int32_t set, const Submission& submission, Deadline deadline);
  Result<std::unique_ptr<Prepared>> prepare(int32_t set, const Submission& submission);
  Result<uint64_t> submit(Prepared& prepared);
  Status run(Prepared& prepared, Deadline deadline);

  Status poll(uint64_t handle);
  Status wait(uint64_t handle, Deadline deadline);
  Status wait_many(const uint64_t* handles, size_t count, Deadline deadline);
  Status release(uint64_t handle);
  // The operation behind a handle, for reading its results after completion; INVALID_ARGUMENT if
  // unknown.
  Result<Operation*> completed_operation(uint64_t handle);
  // What tensor `index` of a completed operation produced; stays with the operation.
  const Output& keep_output(Operation& op, size_t index);

  Result<int32_t> join(Deadline deadline);
  Status barrier(int32_t set, Deadline deadline);

  // ---- process sets: values as in hvd.h, negative codes on failure ----
  struct AddedSet {
    int32_t id;
    bool is_new;  // false: a set of these ranks was there already, on all ranks alike
  };
  Result<AddedSet> add_process_set(std::vector<int32_t> ranks);
  Result<bool> remove_process_set(int32_t id);
  // Only the members call, in any order; may block until all have come.
  Result<int32_t> meet_process_set(std::string_view key, std::vector<int32_t> ranks,
                                   Deadline deadline);
  // Lets agreed operations of the set finish, fails the rest.
  Status leave_process_set(int32_t id);
  const SetRegistry& sets() const { return registry_; }
  bool dynamic_process_sets() const { return settings_.dynamic_process_sets; }

  // ---- tuning ----
  // Rank 0: from one of its next operations on, all ranks of the global set are tuned like this,
  // and those of other sets whose first member this is. Any thread; never blocks. Other ranks:
  // nothing.
  void propose_tuning(const tune::Tuning& tuning);

  // ---- buffers, observation ----
  Result<void*> alloc_buffer(size_t bytes);
  Status free_buffer(void* data);
  bool is_shared(const void* data, size_t bytes) { return job_->arena().contains(data, bytes); }
  // The signal that peers send this process when a stall report names this rank; 0: none.
  Status set_stall_signal(int32_t number);
  static Status check_stall_signal(int32_t number);
  Status start_timeline(const std::string& path, bool mark_cycles);
  Status stop_timeline();
  bool timeline_is_armed() const { return !settings_.timeline.empty(); }
  Statistics& statistics() override { return statistics_; }
  struct OrderCounts {
    uint64_t lockstep = 0, logged = 0, evictions = 0, entries = 0, wakes = 0;
  };
  OrderCounts order_counts();
  std::string recent_operations(size_t most);
  ProgressPolicy default_progress() const { return settings_.progress; }
  // OK, or why every call fails.
  Status health();

 private:
  Engine(EngineOptions options, std::unique_ptr<shm::Job> job);
  Status open_global_set(const std::vector<std::vector<int32_t>>& static_sets);
  void start_threads();

  // ChannelHost
  SubmitLock& submit_lock() override { return submit_lock_; }
  shm::Job& job() override { return *job_; }
  Flight& flight() override { return flight_; }
  const std::atomic<trace::Timeline*>& timeline() const override { return timeline_; }
  void completed(Operation& op) override;
  void telling_failure(const Status& status) override;
  Status begin_internal(const wire::Request& request, Operation& op) override;
  void end_internal(Operation& op) override;
  void tuned(Channel& channel, const tune::Tuning& tuning) override;
  mirror::Mirror* mirror() override { return mirror_.get(); }
  net::Mesh* mesh() override { return mesh_.get(); }
  collective::gloo::Domain* gloo() override { return gloo_.get(); }

  // MirrorHost, NetThreadHost
  void peer_gone(int32_t rank, const Status& why) override;
  void job_failed(int32_t rank, const Status& why) override;
  void stall_reported(int32_t rank) override;
  void news_came() override;

  // WatchHost
  void peer_lost(int rank, const std::string& how) override;
  void peer_frozen(int rank, Nanoseconds silence) override;
  void tick() override;
  bool is_waiting() override { return pending_count() != 0 || set_changes_.any(); }

  // See engine_tuning.cc.
  Status start_tuning();
  void set_waiting(int spin_count, int yield_count);
  void note_reduction(const Operation& op);
  tune::Defaults own_tuning() const;

  Result<Channel*> channel_of(int32_t set, std::string_view what);
  Status closed_status();

  // stepping; all need the role
  StepResult step_all(Channel::Effort effort) HVD_REQUIRES(role_);
  template <typename Done>
  void drive(Channel& first, const Done& done, Deadline deadline) HVD_REQUIRES(role_);
  template <typename Done>
  bool park(Channel& first, const Done& done, Deadline deadline) HVD_REQUIRES(role_);
  void look_after_idle(Channel& first) HVD_REQUIRES(role_);
  void check_role_word();
  // No other channel needs stepping while this one is driven.
  bool is_alone(const Channel& first) const {
    return registry_.open_channels().size() == 1 && !first.is_closed() && !set_changes_.any();
  }
  // A channel waits for something that rings no bell: sleep briefly.
  bool must_poll() const {
    return std::any_of(registry_.open_channels().begin(), registry_.open_channels().end(),
                       [](const Channel* channel) { return channel->must_poll(); });
  }
  shm::Want want_of(const Channel& first) const {
    return is_alone(first) ? first.want() : shm::Want{};
  }
  ChannelOptions channel_options(int32_t id, const std::vector<int32_t>& ranks) const;
  void check_streams(TimePoint now) HVD_REQUIRES(role_);
  // What the streams brought while this thread waits. True: look again.
  bool pump() { return HVD_UNLIKELY(mirror_ != nullptr) && mirror_->pump(); }
  void arm_net_thread() HVD_REQUIRES(role_);
  void signal_stalled(int rank);
  Status add_static_set(std::vector<int32_t> ranks);
  Status agree_on_static_sets(const std::vector<std::vector<int32_t>>& sets);
  // Sets that members open and close among themselves; see engine_meet.cc.
  void settle_set_changes() HVD_REQUIRES(role_);
  bool settle_meeting(SetChange& change) HVD_REQUIRES(role_);
  bool settle_leaving(SetChange& change) HVD_REQUIRES(role_);
  Status open_met_set(const SetChange& change) HVD_REQUIRES(role_);
  uint32_t met_wire_id(const SetChange& change) HVD_REQUIRES(role_);
  std::vector<int32_t> ranks_on_this_host(const std::vector<int32_t>& ranks) const;
  Status give_up_meeting(const std::shared_ptr<SetChange>& change);
  Status withdraw_from(const shm::MeetingPlace& place);
  void check_stalled_meetings(TimePoint now) HVD_REQUIRES(role_);
  void handle_failures() HVD_REQUIRES(role_);
  void close_when_peers_leave() HVD_REQUIRES(role_);
  Status status_without(const Channel& channel) const HVD_REQUIRES(role_);
  int leaver_of(const Channel& channel) const HVD_REQUIRES(role_);
  bool waits_for_somebody_who_left() HVD_REQUIRES(role_);
  void check_stalls(TimePoint now) HVD_REQUIRES(role_);
  // Logs a report, if it is this rank's to report. True: the limit was reached, the job has failed.
  bool act_on_stall(const StallReport& report, const std::vector<int32_t>& ranks, bool reports)
      HVD_REQUIRES(role_);
  void drain(Deadline deadline) HVD_REQUIRES(role_);
  bool is_busy() const HVD_REQUIRES(role_);
  void ring_sleepers();
  void fail_everything(const Status& status) HVD_REQUIRES(role_);
  void leave() HVD_RELEASE(role_);
  void give_role_back() HVD_RELEASE(role_);
  uint64_t pending_count() const;

  // waiting
  template <typename Done>
  Status wait_until(const Done& done, Channel& first, Deadline deadline);
  template <typename Done>
  void wait_for_role_holder(const Done& done, Deadline deadline);
  void notify_local_waiters();
  Status run_slowly(int32_t set, const Submission& submission, Deadline deadline);
  template <typename Admit>
  Status run_here(Channel& channel, const Admit& admit, Deadline deadline);
  template <typename Admit>
  Result<uint64_t> submit_here(Channel& channel, const Admit& admit);
  Status end_run(Operation& op) HVD_RELEASE(role_);
  void completed_with_handle(Operation& op);
  void after_submit(Channel& channel, bool in_background, bool waiter_only);
  Status admit_prepared(Channel& channel, Prepared& prepared, Operation& op);
  Status check_prepared(const Prepared& prepared) const;
  void background_main(const std::stop_token& stop);
  void run_background(const std::stop_token& stop) HVD_REQUIRES(role_);
  bool background_has_work() HVD_REQUIRES(role_);
  void stop_threads();

  void fail(const Status& status, int rank);
  // What a caller is about to be told (telling_failure).
  Status told(Status failure);
  void print_flight_record(const Status& status);

  const uint64_t number_;  // among the engines of this process
  const topology::Topology topology_;
  Settings settings_;
  std::unique_ptr<shm::Job> job_;
  const topology::HostMap hosts_;
  std::unique_ptr<net::Mesh> mesh_;
  std::unique_ptr<collective::gloo::Domain> gloo_;  // outlives the channels
  std::unique_ptr<mirror::Mirror> mirror_;          // null: one host
  const std::shared_ptr<collective::gpu::Notices> gpu_notices_ =
      std::make_shared<collective::gpu::Notices>();  // channels own it too
  SubmitLock submit_lock_;
  EngineRole role_;
  Flight flight_;
  Statistics statistics_;
  HandleTable handles_;
  SetRegistry registry_;
  shm::MeetingTable meetings_;
  SetChanges set_changes_;
  PeerProcesses processes_;
  StallMonitor stall_;

  Channel* global_ = nullptr;  // set 0, the fast path
  std::map<int32_t, SetRegistry::Place> opening_sets_ HVD_GUARDED_BY(role_);
  Deadline leavers_deadline_ HVD_GUARDED_BY(role_) = Deadline::never();
  uint32_t generation_ HVD_GUARDED_BY(role_) = 0;  // process sets opened so far; equal on all ranks
  std::map<uint64_t, uint32_t> met_counts_ HVD_GUARDED_BY(role_);  // by key and ranks
  std::unique_ptr<Operation> sync_operation_ HVD_GUARDED_BY(role_);
  // One-call forms that timed out; they stay until shutdown or completion.
  std::vector<std::unique_ptr<Operation>> late_operations_ HVD_GUARDED_BY(role_);

  // Waiting policy, decided from ranks and cores; the autotuner may change it. Read by all threads
  // that wait, one value at a time.
  std::atomic<int> quick_polls_{0};
  std::atomic<int> spin_count_{0};
  std::atomic<int> yield_count_{0};
  int own_spin_count_ = 0, own_yield_count_ = 0;  // untuned
  bool has_idle_cores_ = false;
  std::unique_ptr<Tuner> tuner_;  // rank 0 of a job that is tuned; set before threads start

  std::atomic<uint32_t> local_waiters_{
      0};  // threads that wait for the role holder; Dekker with local_event_
  std::atomic<uint32_t> local_event_{0};
  std::atomic<uint32_t> background_operations_{
      0};  // pending ones that the background thread must drive
  std::atomic<bool> background_sleeps_with_role_{false};
  std::atomic<uint64_t> submitted_{0}, finished_{0};

  std::atomic<bool> is_broken_{false};   // failure_ is set
  std::atomic<bool> is_closing_{false};  // no new submissions
  std::atomic<bool> is_shut_down_{false};
  Mutex failure_mutex_;
  Status failure_ HVD_GUARDED_BY(failure_mutex_);
  bool record_printed_ HVD_GUARDED_BY(failure_mutex_) = false;
  // Whose leaving closed a set; stored before the set is closed, loaded when its operations end.
  std::atomic<int> leaver_{-1};
  const FailureNoteWriter note_;
  std::atomic<bool> is_note_left_{false};  // whoever raises it writes the note

  std::atomic<trace::Timeline*> timeline_{nullptr};
  std::atomic<bool> mark_cycles_{false};
  Mutex timeline_mutex_;
  std::vector<std::unique_ptr<trace::Timeline>> timelines_
      HVD_GUARDED_BY(timeline_mutex_);  // the last one is in use

  int stray_ticks_ = 0;  // of check_role_word()

  std::unique_ptr<mirror::NetThread> net_thread_;
  std::unique_ptr<Watch> watch_;
  std::jthread background_;  // last: joined before what it uses goes
};

}  // namespace hvd::engine
