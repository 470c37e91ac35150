// engine.h - the engine of one rank: its parts, put together; life cycle; what channels, peers and
// other threads tell it.
//
// Parts, lowest first:
//   Failure      why nothing more is done       ProcessSets, MetSets   channels, and who opens them
//   Lookout      what is looked for while idle  Driver, Background     who steps, how threads wait
//   EngineTuning what rank 0 proposes           Submissions, SetCalls  what callers ask for
//
// Threads of a rank:
//   callers      submit under the submit lock; one that waits takes the engine role and drives
//   hvd-engine   drives what nobody waits for
//   hvd-net      (jobs on several hosts) looks after the streams while nobody drives
//   hvd-watch    sleeps on the peers' process descriptors; ticks once a second: heartbeat, frozen
//                peers, stalls
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/engine_role.h"
#include "base/interrupt.h"
#include "base/settings.h"
#include "base/status.h"
#include "base/thread_annotations.h"
#include "collective/gloo/domain.h"
#include "engine/channel/channel.h"
#include "engine/drive/background.h"
#include "engine/drive/driver.h"
#include "engine/drive/timelines.h"
#include "engine/drive/tuning.h"
#include "engine/health/failure.h"
#include "engine/health/lookout.h"
#include "engine/health/watch.h"
#include "engine/operation/prepared.h"
#include "engine/set_calls.h"
#include "engine/sets/met_sets.h"
#include "engine/sets/process_sets.h"
#include "engine/submissions.h"
#include "mirror/net_thread.h"
#include "net/keys/key.h"
#include "topology/hosts.h"
#include "topology/topology.h"

namespace hvd::engine {

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

  const topology::Topology& topology() const { return surroundings_.topology; }
  uint64_t number() const { return surroundings_.engine_number; }
  // Lets agreed operations finish, fails the rest, tells the others. May block up to the deadline.
  // Idempotent.
  void shutdown(Deadline deadline);

  // ---- submissions; set is a process set id ----
  Result<uint64_t> submit(int32_t set, const Submission& submission) {
    return submissions_.submit(set, submission);
  }
  Status run(int32_t set, const Submission& submission, Deadline deadline) {
    return submissions_.run(set, submission, deadline);
  }
  Result<std::unique_ptr<Prepared>> prepare(int32_t set, const Submission& submission) {
    return submissions_.prepare(set, submission);
  }
  Result<uint64_t> submit(Prepared& prepared) { return submissions_.submit(prepared); }
  Status run(Prepared& prepared, Deadline deadline) { return submissions_.run(prepared, deadline); }

  Status poll(uint64_t handle) { return submissions_.poll(handle); }
  Status wait(uint64_t handle, Deadline deadline) { return submissions_.wait(handle, deadline); }
  Status wait_many(const uint64_t* handles, size_t count, Deadline deadline) {
    return submissions_.wait_many(handles, count, deadline);
  }
  Status release(uint64_t handle) { return submissions_.release(handle); }
  // The operation behind a handle, for reading its results after completion; INVALID_ARGUMENT if
  // unknown.
  Result<Operation*> completed_operation(uint64_t handle) {
    return submissions_.completed_operation(handle);
  }
  // What tensor `index` of a completed operation produced; stays with the operation.
  static const Output& keep_output(Operation& op, size_t index) {
    return Submissions::keep_output(op, index);
  }

  Result<int32_t> join(Deadline deadline) { return submissions_.join(deadline); }
  Status barrier(int32_t set, Deadline deadline) { return set_calls_.barrier(set, deadline); }

  // ---- process sets: values as in hvd.h, negative codes on failure ----
  using AddedSet = engine::AddedSet;
  Result<AddedSet> add_process_set(std::vector<int32_t> ranks) {
    return set_calls_.add(std::move(ranks));
  }
  Result<bool> remove_process_set(int32_t id) { return set_calls_.remove(id); }
  // Only the members call, in any order; may block until all have come.
  Result<int32_t> meet_process_set(std::string_view key, std::vector<int32_t> ranks,
                                   Deadline deadline) {
    return set_calls_.meet(key, std::move(ranks), deadline);
  }
  // Lets agreed operations of the set finish, fails the rest.
  Status leave_process_set(int32_t id) { return set_calls_.leave(id); }
  const SetRegistry& sets() const { return sets_.registry(); }
  bool dynamic_process_sets() const { return surroundings_.settings.dynamic_process_sets; }

  // ---- tuning ----
  // Rank 0: from one of its next operations on, all ranks of the global set are tuned like this,
  // and those of other sets whose first member this is. Any thread; never blocks. Other ranks:
  // nothing.
  void propose_tuning(const tune::Tuning& tuning) { tuning_.propose(tuning); }

  // ---- buffers, observation ----
  Result<void*> alloc_buffer(size_t bytes);
  Status free_buffer(void* data) { return job().arena().free(data); }
  bool is_shared(const void* data, size_t bytes) { return job().arena().contains(data, bytes); }
  // The signal that peers send this process when a stall report names this rank; 0: none.
  Status set_stall_signal(int32_t number);
  static Status check_stall_signal(int32_t number) { return engine::check_stall_signal(number); }
  Status start_timeline(const std::string& path, bool mark_cycles) {
    return timelines_.start(path, mark_cycles);
  }
  Status stop_timeline() { return timelines_.stop(); }
  bool timeline_is_armed() const { return timelines_.is_armed(); }
  Statistics& statistics() override { return statistics_; }
  struct OrderCounts {
    uint64_t lockstep = 0, logged = 0, evictions = 0, entries = 0, wakes = 0;
  };
  OrderCounts order_counts() const;
  std::string recent_operations(size_t most) const { return lookout_.recent_operations(most); }
  ProgressPolicy default_progress() const { return surroundings_.settings.progress; }
  // OK, or why every call fails.
  Status health() { return failure_.health(); }

 private:
  explicit Engine(Surroundings surroundings);
  Status open(const std::vector<std::vector<int32_t>>& static_sets, const Interrupt& interrupt);
  Status start_threads(const Interrupt& interrupt);
  void stop_threads();
  void tell_leaving();
  void end_operations(Deadline deadline);

  // ChannelHost
  SubmitLock& submit_lock() override { return submit_lock_; }
  shm::Job& job() override { return *surroundings_.job; }
  Flight& flight() override { return flight_; }
  const std::atomic<trace::Timeline*>& timeline() const override { return timelines_.current(); }
  void completed(Operation& op) HVD_REQUIRES(engine_role) override { submissions_.completed(op); }
  void telling_failure(const Status& status) override { failure_.telling(status); }
  Status begin_internal(const wire::Request& request, Operation& op)
      HVD_REQUIRES(engine_role) override {
    return sets_.begin_change(request, op);
  }
  void end_internal(Operation& op) HVD_REQUIRES(engine_role) override;
  void tuned(Channel& channel, const tune::Tuning& tuning) HVD_REQUIRES(engine_role) override {
    tuning_.switched(channel, tuning);
  }
  mirror::Mirror* mirror() override { return mirror_.get(); }
  net::Mesh* mesh() override { return surroundings_.mesh.get(); }
  collective::gloo::Domain* gloo() override { return surroundings_.gloo.get(); }

  // MirrorHost, NetThreadHost
  void peer_gone(int32_t rank, const Status& why) override;
  void job_failed(int32_t rank, const Status& why) override;
  void stall_reported(int32_t rank) override { lookout_.signal_stalled(rank); }
  void news_came() override;

  // WatchHost
  void peer_lost(int rank, const std::string& how) override;
  void peer_frozen(int rank, Nanoseconds silence) override;
  void tick() override;
  bool is_waiting() override { return pending_.count() != 0 || met_sets_.any_changes(); }

  DriverView driver_view();

  const Surroundings surroundings_;
  std::unique_ptr<mirror::Mirror> mirror_;  // null: one host
  SubmitLock submit_lock_;
  EngineRole role_;
  Flight flight_;
  Statistics statistics_;
  Pending pending_;
  LocalWaiters waiters_;
  Failure failure_;
  Timelines timelines_;
  ProcessSets sets_;
  MetSets met_sets_;
  EngineTuning tuning_;
  Lookout lookout_;
  Driver driver_;
  Submissions submissions_;
  SetCalls set_calls_;
  // Threads last: ended before what they use goes.
  std::unique_ptr<mirror::NetThread> net_thread_;
  std::unique_ptr<Watch> watch_;
  Background background_;
};

}  // namespace hvd::engine
