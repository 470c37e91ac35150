#include "collective/gpu/backend.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "collective/gpu/launch_plan.h"

namespace hvd::collective::gpu {
namespace {

// NCCL may see that a peer has gone before the kernel says which process has ended, and it does not
// say who: whoever knows more has this time to say so.
constexpr Nanoseconds kCauseTime = std::chrono::milliseconds(300);

}  // namespace

GpuBackend::GpuBackend(shared_memory::Link& link, const Options& options,
                       std::vector<Backend*> hosts)
    : link_(link), options_(options), lane_(hosts), waker_(std::make_shared<Waker>(link.job())) {
  for (const Backend* backend : hosts) spans_hosts_ = spans_hosts_ || backend->spans_hosts();
}

GpuBackend::~GpuBackend() {
  waker_->forget_job();
  // Not destroyed: that may wait for members which are still at work.
  for (auto& [key, route] : routes_) route.comms.abort();
}

const Capabilities& GpuBackend::capabilities() const {
  static const Capabilities kTable = {{.kind = WorkKind::kReduce, .device = DeviceKind::kGpu},
                                      {.kind = WorkKind::kExchange, .device = DeviceKind::kGpu},
                                      {.kind = WorkKind::kAdasum, .device = DeviceKind::kGpu}};
  return kTable;
}

// ---- what it waits for ----

shm::Want GpuBackend::want() const {
  // A stream wakes us whatever we want; so only what the host backends wait for can be narrow.
  return lane_.is_idle() || !entries_.empty() ? shm::Want{} : lane_.current()->want();
}

int GpuBackend::awaited_here() const {
  return lane_.is_idle() ? link_.me() : lane_.current()->awaited_here();
}

std::vector<int> GpuBackend::awaited_elsewhere() const {
  return lane_.is_idle() ? std::vector<int>() : lane_.current()->awaited_elsewhere();
}

void GpuBackend::add_descriptors(std::vector<pollfd>& out) {
  if (!lane_.is_idle()) lane_.current()->add_descriptors(out);
}

// Streams are asked by calls of the driver, of some hundred nanoseconds each, and wake us anyway.
int GpuBackend::look_cost() const {
  constexpr int kOfDriver = 32;
  return entries_.empty() ? 1 : kOfDriver;
}

bool GpuBackend::must_poll() const {
  if (!failure_.is_ok() && status_.is_ok()) return true;
  const bool meets = std::any_of(routes_.begin(), routes_.end(), [](const auto& item) {
    return item.second.state == Route::State::kMeeting;
  });
  return meets || std::any_of(entries_.begin(), entries_.end(),
                              [](const Entry& entry) { return entry.is_launching; });
}

bool GpuBackend::Entry::uses_lane() const {
  if (is_over) return false;
  return staging != nullptr ||
         std::any_of(stages.begin() + static_cast<std::ptrdiff_t>(stage), stages.end(),
                     [](const Stage& later) { return later.reach == Reach::kHostMemory; });
}

bool GpuBackend::is_lane_taken() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const Entry& entry) { return entry.uses_lane(); });
}

// Members launch in the same order: all stages of a work before the next work.
bool GpuBackend::may_launch() const {
  return std::all_of(entries_.begin(), entries_.end(),
                     [](const Entry& entry) { return entry.is_launched(); });
}

void GpuBackend::fail(const Status& status) {
  if (!failure_.is_ok() || status.is_ok()) return;
  failure_ = Status(status.code(), concat("devices of process set ", options_.process_set, ": ",
                                          status.message()));
  tell_at_ = Deadline::after(kCauseTime);
}

// ---- works ----

Progress GpuBackend::advance(std::deque<Work*>& queue, std::vector<Work*>& done) {
  const auto is_own = [&] { return !queue.empty() && queue.front()->backend == this; };
  if (!failure_.is_ok()) {
    if (tell_at_.passed()) status_ = failure_;
    return Progress::kBlocked;
  }
  bool moved = false;
  while (failure_.is_ok() && is_own() && begins(*queue.front(), moved)) {
    queue.pop_front();
    moved = true;
  }
  for (Entry& entry : entries_) {
    if (!failure_.is_ok()) return Progress::kBlocked;
    fail(look_at(entry, moved));
  }
  if (!failure_.is_ok()) return Progress::kBlocked;
  report(done, moved);
  if (entries_.empty() && !is_own()) return Progress::kDone;
  return moved ? Progress::kAdvanced : Progress::kBlocked;
}

namespace {

// Bytes may be objects, which are protected between hosts; NCCL protects nothing.
bool moves_objects(const Work& work) {
  return std::any_of(work.exchanges.begin(), work.exchanges.end(),
                     [](const Exchange& x) { return x.moves_bytes; });
}

}  // namespace

// How it goes by NCCL; nothing: not at all.
std::optional<Levels> GpuBackend::levels_of(const Work& work, const Route& route) const {
  if (route.state != Route::State::kNccl) return std::nullopt;
  const Decision& known = route.decision;
  const auto may_go = [&](Levels levels) {
    return can_launch(work, options_.size, known.abilities, levels);
  };
  if (known.levels != Levels::kNone && may_go(known.levels)) return known.levels;
  if (known.may_leave_host && may_go(Levels::kNone)) return Levels::kNone;
  return std::nullopt;
}

// False: not yet.
bool GpuBackend::begins(Work& work, bool& moved) {
  const auto begin = [&](const Status& status) {
    fail(status);
    return status.is_ok();
  };
  // Whether our kernels are there is known with the route, but who asks must be agreed before.
  const bool may_use_nccl = can_launch(work, options_.size, {.has_kernels = true, .packs = true}) &&
                            !(spans_hosts_ && moves_objects(work));
  if (may_use_nccl) {
    Route& route = route_of(work);
    if (!settle(route, work, moved)) return false;
    const auto levels = levels_of(work, route);
    if (levels) {
      if (!may_launch()) return false;
      ++nccl_works_;
      return begin(begin_nccl(work, route, *levels));
    }
  }
  if (is_lane_taken()) return false;
  if (may_use_nccl) ++nccl_works_;
  return begin(begin_staging(work));
}

int GpuBackend::device_of(const Work& work) {
  if (work.device.index >= 0) last_device_ = work.device.index;
  if (last_device_ < 0) {  // has joined before its first work: what it would most likely have used
    const auto driver = device::Driver::get();
    const bool is_there = driver && options_.local_rank < (*driver)->device_count();
    last_device_ = is_there ? options_.local_rank : 0;
  }
  return last_device_;
}

Result<GpuBackend::Streams*> GpuBackend::streams_of(int device) {
  const auto found = streams_.find(device);
  if (found != streams_.end()) return &found->second;
  Streams made;
  HVD_TRY_ASSIGN(made.in, device::Stream::make(device));
  HVD_TRY_ASSIGN(made.out, device::Stream::make(device));
  for (int i = 0; i < options_.nccl_streams; ++i) {
    HVD_TRY_ASSIGN(device::Stream stream, device::Stream::make(device));
    made.nccl.push_back(std::move(stream));
    made.scratch.emplace_back(device);
  }
  return &streams_.emplace(device, std::move(made)).first->second;
}

void GpuBackend::report(std::vector<Work*>& done, bool& moved) {
  while (!entries_.empty() && entries_.front().is_over) {
    done.push_back(entries_.front().work);
    entries_.pop_front();
    moved = true;
  }
}

// ---- works that were reported before streams have run them ----

Result<bool> GpuBackend::is_late(Route& route) {
  HVD_TRY_ASSIGN(const device::Current current, device::Current::enter(route.late->device()));
  HVD_TRY_ASSIGN(const bool is_idle, route.late->is_idle());
  if (is_idle) return false;
  HVD_TRY_ASSIGN(const bool is_ready, route.comms.are_ready());
  (void)is_ready;
  return true;
}

bool GpuBackend::look_after_streams() {
  Status first;
  bool any = false;
  for (auto& [key, route] : routes_) {
    if (route.late == nullptr) continue;
    const Result<bool> late = is_late(route);
    if (late && !*late) {
      route.late = nullptr;
      continue;
    }
    any = true;
    if (!late && first.is_ok()) first = late.status();
  }
  // A peer that has left, and is seen to be gone, may have given all that was asked of it.
  if (first.is_ok()) {
    late_until_ = Deadline::never();
  } else if (late_until_.is_never()) {
    late_until_ = Deadline::after(kCauseTime);
  } else if (late_until_.passed()) {
    fail(first);
    status_ = failure_;
  }
  return any;
}

void GpuBackend::abort_streams() {
  for (auto& [key, route] : routes_) {
    if (std::exchange(route.late, nullptr) != nullptr) route.comms.abort();
  }
}

void GpuBackend::abandon() {
  lane_.abandon();
  for (auto& [key, route] : routes_) route.comms.abort();
  // What was queued still touches memory of works: wait for it, but not for ever.
  const Deadline deadline = Deadline::after(std::chrono::seconds(1));
  for (const auto& [device, streams] : streams_) {
    const auto current = device::Current::enter(device);
    const auto is_idle = [](const device::Stream& stream) {
      const auto idle = stream.is_idle();
      return !idle || *idle;
    };
    while (!deadline.passed() && !(is_idle(streams.in) && is_idle(streams.out) &&
                                   std::all_of(streams.nccl.begin(), streams.nccl.end(), is_idle)))
      sched_yield();
  }
  for (auto& [device, streams] : streams_) {
    for (StreamScratch& scratch : streams.scratch) {
      if (deadline.passed()) scratch.forget();
    }
  }
  entries_.clear();
  for (auto& [key, route] : routes_) route.late = nullptr;
}

}  // namespace hvd::collective::gpu
