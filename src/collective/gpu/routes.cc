// How the members of a channel find out whether NCCL can be used, and how works begin.
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "collective/gpu/backend.h"

namespace hvd::collective::gpu {

GpuBackend::Route& GpuBackend::route_of(const Work& work) {
  const int stream = static_cast<int>(nccl_works_ % static_cast<uint64_t>(options_.nccl_streams));
  return routes_[{work.devices, stream}];
}

// Whether the way is known by now.
bool GpuBackend::settle(Route& route, const Work& work, bool& moved) {
  if (route.state == Route::State::kNccl || route.state == Route::State::kStaging) return true;
  if (route.state == Route::State::kFresh) {
    if (is_staging()) return false;  // the lane is in use
    fail(ask(route, work));
    moved = true;
  }
  if (route.state == Route::State::kAsking && failure_.is_ok()) {
    std::vector<Work*> done;
    moved = lane_.advance(done) != Progress::kBlocked || moved;
    if (done.empty()) return false;
    fail(answer(route, work));
  }
  if (route.state == Route::State::kMeeting && failure_.is_ok()) {
    const auto current = device::Current::enter(device_of(work));
    const auto is_ready = route.comm->is_ready();
    if (!is_ready) fail(is_ready.status());
    if (!is_ready || !*is_ready) return false;
    route.state = Route::State::kNccl;
    moved = true;
  }
  return failure_.is_ok();
}

Status GpuBackend::ask(Route& route, const Work& work) {
  const auto size = static_cast<size_t>(options_.size);
  route.state = Route::State::kAsking;
  route.mine = own_facts(device_of(work), options_.me == 0);
  route.facts.resize(size);
  Work& question = route.question;
  question.reset(WorkKind::kExchange);
  question.cut = work.cut;
  Exchange x;
  x.same_block_for_all = true;
  x.in = reinterpret_cast<const std::byte*>(&route.mine);
  x.out = reinterpret_cast<std::byte*>(route.facts.data());
  x.send_offset = {0};
  x.send_bytes = {sizeof(Facts)};
  for (size_t r = 0; r < size; ++r) {
    x.receive_offset.push_back(r * sizeof(Facts));
    x.receive_bytes.push_back(sizeof(Facts));
  }
  x.largest_block_bytes = sizeof(Facts);
  question.exchanges.push_back(std::move(x));
  return lane_.add(question);
}

void GpuBackend::say_who_chooses_levels() {
  // All members know that one of them has said it.
  if (std::exchange(options_.notices->levels, true) || options_.me != 0) return;
  const std::string asked = settings_about_levels(process_environment());
  if (asked.empty()) return;
  HVD_LOG(kWarning, asked, ": no effect on GPU tensors, for which NCCL chooses its own levels");
}

Status GpuBackend::answer(Route& route, const Work& work) {
  const Decision decision = decide(route.facts);
  if (!decision.use_nccl) {
    route.state = Route::State::kStaging;
    // All members know that one of them has said it.
    if (!std::exchange(options_.notices->host_memory, true) && options_.me == 0) {
      HVD_LOG(kWarning, "GPU tensors of process set ", options_.process_set,
              " travel through host memory, which is slower than NCCL: ", decision.reason);
    }
    return Status::ok();
  }
  HVD_TRY_ASSIGN(const NcclApi* const api, NcclApi::get());
  const int device = device_of(work);
  HVD_TRY_ASSIGN(const device::Current current, device::Current::enter(device));
  HVD_TRY_ASSIGN(Communicator comm, Communicator::begin(*api, {device, options_.size, options_.me},
                                                        route.facts[0].id));
  route.comm.emplace(std::move(comm));
  tell(work, "INIT_NCCL");
  say_who_chooses_levels();
  route.abilities = decision.abilities;
  route.state = Route::State::kMeeting;
  return Status::ok();
}

Status GpuBackend::begin_staging(Work& work) {
  tell(work, "STAGING");
  const int device = device_of(work);
  HVD_TRY_ASSIGN(const device::Current current, device::Current::enter(device));
  HVD_TRY_ASSIGN(Streams* const streams, streams_of(device));
  Entry entry;
  entry.work = &work;
  entry.staging = std::make_unique<Staging>(
      work, StagingMeans{lane_, streams->in, streams->out, streams->memory, waker_, device});
  entries_.push_back(std::move(entry));
  return Status::ok();
}

// A member that has joined has no buffers: it sends zeros and drops what comes.
Status GpuBackend::replace_missing(Entry& entry, std::vector<Call>& calls) {
  for (Call& call : calls) {
    if (call.kind != CallKind::kAllReduce || (call.in != nullptr && call.out != nullptr)) continue;
    const uint64_t bytes = call.count * sizeof(double);  // the widest element
    HVD_TRY_ASSIGN(std::byte* const memory, entry.scratch->take(bytes));
    if (call.in == nullptr) {
      HVD_TRY(entry.stream->zero(memory, bytes));
      call.in = memory;
    }
    if (call.out == nullptr) call.out = memory;
  }
  return Status::ok();
}

Status GpuBackend::copy_overlapping(Entry& entry, Work& work) {
  for (Exchange& x : work.exchanges) {
    if (!must_copy_input(x, options_.me)) continue;
    HVD_TRY_ASSIGN(std::byte* const memory, entry.scratch->take(input_bytes(x)));
    HVD_TRY(entry.stream->copy(memory, x.in, input_bytes(x)));
    x.in = memory;
  }
  return Status::ok();
}

Status GpuBackend::begin_nccl(Work& work, Route& route) {
  tell(work, "NCCL");
  const int device = device_of(work);
  HVD_TRY_ASSIGN(const device::Current current, device::Current::enter(device));
  HVD_TRY_ASSIGN(Streams* const streams, streams_of(device));
  const auto number = (nccl_works_ - 1) % static_cast<uint64_t>(options_.nccl_streams);
  Entry& entry = entries_.emplace_back();
  entry.work = &work;
  entry.route = &route;
  entry.stream = &streams->nccl[number];
  entry.scratch = &streams->scratch[number];
  entry.scratch->restart();
  if (work.use != nullptr) HVD_TRY(work.use->hold_back(entry.stream->handle()));
  HVD_TRY(copy_overlapping(entry, work));
  const auto plan_in = [&](std::byte* scratch) {
    return plan_launch(work, options_.size, options_.me, route.abilities, scratch);
  };
  entry.plan = plan_in(nullptr);
  if (entry.plan.scratch_bytes > 0) {
    HVD_TRY_ASSIGN(std::byte* const scratch, entry.scratch->take(entry.plan.scratch_bytes));
    entry.plan = plan_in(scratch);
  }
  HVD_TRY(launch(entry));
  HVD_TRY_ASSIGN(const bool is_launched, route.comm->is_ready());
  entry.is_launching = !is_launched;
  return is_launched ? note_launched(entry) : Status::ok();
}

Status GpuBackend::run_kernels(const Entry& entry, const std::vector<KernelStep>& steps) {
  for (const KernelStep& step : steps) {
    HVD_TRY_ASSIGN(const GpuKernels* const kernels, GpuKernels::of(device_of(*entry.work)));
    HVD_TRY(kernels->run(step.kernel, step.segments, step.scale, entry.stream->handle()));
  }
  return Status::ok();
}

// What comes before NCCL, and NCCL; the rest follows when NCCL has put its own into the stream.
Status GpuBackend::launch(Entry& entry) {
  LaunchPlan& plan = entry.plan;
  for (const Stretch& stretch : plan.zeros)
    HVD_TRY(entry.stream->zero(stretch.begin, stretch.bytes));
  HVD_TRY(run_kernels(entry, plan.before));
  HVD_TRY(replace_missing(entry, plan.calls));
  return entry.route->comm->launch(plan.calls, entry.stream->handle());
}

// Everything of NCCL is in the stream: our own comes behind it, and its end can be marked.
Status GpuBackend::note_launched(Entry& entry) {
  entry.is_launching = false;
  HVD_TRY(run_kernels(entry, entry.plan.after));
  HVD_TRY_ASSIGN(entry.done, device::Event::take(device_of(*entry.work)));
  HVD_TRY(entry.done.record(entry.stream->handle()));
  const bool may_end_now = options_.async_completion && entry.work->use != nullptr;
  if (!may_end_now) return Waker::wake_after(waker_, *entry.stream);
  entry.work->use->done = std::move(entry.done);
  entry.is_over = true;
  return Status::ok();
}

}  // namespace hvd::collective::gpu
