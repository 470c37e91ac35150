#include "collective/gpu/backend.h"

#include <sched.h>

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "collective/gpu/launch_plan.h"

namespace hvd::collective::gpu {
namespace {

// NCCL may see that a peer has gone before the kernel says which process has ended, and it does not
// say who: whoever knows more has this time to say so.
constexpr Nanoseconds kCauseTime = std::chrono::milliseconds(500);

}  // namespace

GpuBackend::GpuBackend(shared_memory::Link& link, const Options& options,
                       std::vector<Backend*> hosts)
    : link_(link), options_(options), lane_(hosts), waker_(std::make_shared<Waker>(link.job())) {
  for (const Backend* backend : hosts) spans_hosts_ = spans_hosts_ || backend->spans_hosts();
}

GpuBackend::~GpuBackend() {
  waker_->forget_job();
  // Not destroyed: that may wait for members which are still at work.
  for (auto& [key, route] : routes_) {
    if (route.comm) route.comm->abort();
  }
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

bool GpuBackend::is_staging() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const Entry& entry) { return entry.staging != nullptr && !entry.is_over; });
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
    if (route.state == Route::State::kNccl && can_launch(work, options_.size, route.abilities)) {
      if (must_poll()) return false;  // a launch before this one is not through
      ++nccl_works_;
      return begin(begin_nccl(work, route));
    }
  }
  if (is_staging()) return false;
  if (may_use_nccl) ++nccl_works_;
  return begin(begin_staging(work));
}

int GpuBackend::device_of(const Work& work) {
  if (work.device.index >= 0) last_device_ = work.device.index;
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

// Moves an entry on, if its stream has.
Status GpuBackend::look_at(Entry& entry, bool& moved) {
  if (entry.is_over) return Status::ok();
  HVD_TRY_ASSIGN(const device::Current current, device::Current::enter(device_of(*entry.work)));
  if (entry.staging != nullptr) {
    const Progress progress = entry.staging->advance();
    HVD_TRY(entry.staging->status());
    entry.is_over = progress == Progress::kDone;
    moved = moved || progress != Progress::kBlocked;
    return Status::ok();
  }
  HVD_TRY_ASSIGN(const bool is_launched, entry.route->comm->is_ready());
  if (!is_launched) return Status::ok();
  if (entry.is_launching) {
    HVD_TRY(note_launched(entry));
    moved = true;
    if (entry.is_over) return Status::ok();
  }
  HVD_TRY_ASSIGN(entry.is_over, entry.done.is_over());
  moved = moved || entry.is_over;
  return Status::ok();
}

void GpuBackend::report(std::vector<Work*>& done, bool& moved) {
  while (!entries_.empty() && entries_.front().is_over) {
    done.push_back(entries_.front().work);
    entries_.pop_front();
    moved = true;
  }
}

void GpuBackend::abandon() {
  lane_.abandon();
  for (auto& [key, route] : routes_) {
    if (route.comm) route.comm->abort();
  }
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
}

}  // namespace hvd::collective::gpu
