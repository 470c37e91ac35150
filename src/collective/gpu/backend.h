// backend.h - works in device memory: by NCCL where all members have it, else through pinned host
// memory by the other backends of the channel. Which of the two is agreed at the first work for
// each list of devices, through host memory: until then nothing is loaded, and no communicator
// exists. Works are begun in the agreed order, run in streams, and reported in order. Never blocks.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "collective/backend.h"
#include "collective/gpu/agreement.h"
#include "collective/gpu/communicators.h"
#include "collective/gpu/host_lane.h"
#include "collective/gpu/options.h"
#include "collective/gpu/staging.h"
#include "collective/gpu/stream_scratch.h"
#include "collective/gpu/waker.h"
#include "collective/shared_memory/link.h"

namespace hvd::collective::gpu {

class GpuBackend final : public Backend {
 public:
  // `hosts`: the backends that move host memory; they outlive this one.
  GpuBackend(shared_memory::Link& link, const Options& options, std::vector<Backend*> hosts);
  ~GpuBackend() override;

  std::string_view name() const override { return "gpu"; }
  const Capabilities& capabilities() const override;
  std::string_view activity() const override { return ""; }
  Progress advance(std::deque<Work*>& queue, std::vector<Work*>& done)
      HVD_REQUIRES(engine_role) override;
  void abandon() HVD_REQUIRES(engine_role) override;
  bool look_after_streams() HVD_REQUIRES(engine_role) override;
  void abort_streams() HVD_REQUIRES(engine_role) override;
  shm::Want want() const override;
  int awaited_here() const override;
  std::vector<int> awaited_elsewhere() const override;
  bool spans_hosts() const override { return spans_hosts_; }
  void add_descriptors(std::vector<pollfd>& out) override;
  int look_cost() const override;
  bool must_poll() const override;
  const Status& status() const override { return status_; }

 private:
  // The way for one list of devices, found with its first work.
  struct Route {
    enum class State { kFresh, kAsking, kNaming, kMeeting, kNccl, kStaging };
    State state = State::kFresh;
    Facts mine;
    std::vector<Facts> facts;
    LevelIds my_ids;
    std::vector<LevelIds> ids;
    Work question;  // what each member says, to everybody
    Decision decision;
    Layout layout;
    Communicators comms;
    const device::Stream* late = nullptr;  // may still run works that were reported
  };
  using RouteKey = std::pair<std::vector<int32_t>, int>;  // devices by member, number of the stream

  // A work that was begun.
  struct Entry {
    Work* work = nullptr;
    bool is_over = false;
    std::unique_ptr<Staging> staging;  // of the work, or of a stage; or by NCCL:
    Route* route = nullptr;
    const device::Stream* stream = nullptr;
    LaunchPlan plan;
    std::vector<Stage> stages;
    size_t stage = 0;  // that is next, or goes through host memory now
    bool is_launching = false;
    Work middle;  // the stage through host memory
    device::Event done;
    StreamScratch* scratch = nullptr;

    bool is_launched() const { return !is_launching && stage == stages.size(); }
    // It does, or will.
    bool uses_lane() const;
  };

  struct Streams {
    device::Stream in, out;
    std::vector<device::Stream> nccl;
    std::vector<StreamScratch> scratch;  // of each
    StagingMemory memory;
  };

  static void tell(const Work& work, std::string_view activity) {
    if (work.on_activity) work.on_activity(activity);
  }
  bool begins(Work& work, bool& moved) HVD_REQUIRES(engine_role);
  Route& route_of(const Work& work);
  bool settle(Route& route, const Work& work, bool& moved) HVD_REQUIRES(engine_role);
  Status ask(Route& route, const Work& work) HVD_REQUIRES(engine_role);
  Status answer(Route& route, const Work& work) HVD_REQUIRES(engine_role);
  Status ask_ids(Route& route, const Work& work) HVD_REQUIRES(engine_role);
  Status note_ids(Route& route, const Work& work);
  Status exchange(Route& route, const Work& work, const void* mine, void* all, uint64_t bytes)
      HVD_REQUIRES(engine_role);
  void say_about_levels(const Route& route) HVD_REQUIRES(engine_role);
  std::optional<Levels> levels_of(const Work& work, const Route& route) const;
  Status begin_staging(Work& work);
  Status begin_nccl(Work& work, Route& route, Levels levels) HVD_REQUIRES(engine_role);
  Status replace_missing(Entry& entry, std::vector<Call>& calls) HVD_REQUIRES(engine_role);
  Status copy_overlapping(Entry& entry, Work& work) HVD_REQUIRES(engine_role);
  Status run_kernels(const Entry& entry, const std::vector<KernelStep>& steps);
  Status prepare(Entry& entry) HVD_REQUIRES(engine_role);
  Status go_on(Entry& entry) HVD_REQUIRES(engine_role);
  Status begin_middle(Entry& entry) HVD_REQUIRES(engine_role);
  Status look_at_staging(Entry& entry, bool& moved) HVD_REQUIRES(engine_role);
  Status note_launched(Entry& entry);
  Status look_at(Entry& entry, bool& moved) HVD_REQUIRES(engine_role);
  static Result<bool> is_late(Route& route);
  void report(std::vector<Work*>& done, bool& moved);
  Result<Streams*> streams_of(int device);
  int device_of(const Work& work);
  void fail(const Status& status);
  bool is_lane_taken() const;
  bool may_launch() const;

  shared_memory::Link& link_;
  const Options options_;
  bool spans_hosts_ = false;
  HostLane lane_;
  const std::shared_ptr<Waker> waker_;  // streams own it too
  std::map<int, Streams> streams_;
  std::map<RouteKey, Route> routes_;
  std::deque<Entry> entries_;             // in the agreed order
  uint64_t nccl_works_ = 0;               // that NCCL could run; equal on all members
  int nccl_streams_ = 1;                  // that they take in turn; agreed with the first of them
  int last_device_ = -1;                  // stands in for that of a member that has joined
  Status failure_;                        // the first
  Deadline tell_at_ = Deadline::never();  // when it becomes the status
  Deadline late_until_ = Deadline::never();  // when an error of a late stream becomes one
  Status status_;
};

}  // namespace hvd::collective::gpu
