// How works begin, and go on from stage to stage.
#include <algorithm>

#include "collective/gpu/backend.h"

namespace hvd::collective::gpu {

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

namespace {

// NCCL would read or write it, also for the others.
Status check_memory(const Work& work) {
  for (const Exchange& x : work.exchanges) {
    const bool lacks_input = x.in == nullptr && input_bytes(x) > 0;
    const bool lacks_output = x.out == nullptr && output_bytes(x) > 0;
    if (!lacks_input && !lacks_output) continue;
    return work.status.is_ok() ? unknown_error("an operation has no buffer") : work.status;
  }
  return Status::ok();
}

}  // namespace

Status GpuBackend::copy_overlapping(Entry& entry, Work& work) {
  for (Exchange& x : work.exchanges) {
    if (!must_copy_input(x, options_.me)) continue;
    HVD_TRY_ASSIGN(std::byte* const memory, entry.scratch->take(input_bytes(x)));
    HVD_TRY(entry.stream->copy(memory, x.in, input_bytes(x)));
    x.in = memory;
  }
  return Status::ok();
}

Status GpuBackend::begin_nccl(Work& work, Route& route, Levels levels) {
  HVD_TRY(check_memory(work));
  const int device = device_of(work);
  HVD_TRY_ASSIGN(const device::Current current, device::Current::enter(device));
  HVD_TRY_ASSIGN(Streams* const streams, streams_of(device));
  const auto number = (nccl_works_ - 1) % static_cast<uint64_t>(nccl_streams_);
  Entry& entry = entries_.emplace_back();
  entry.work = &work;
  entry.route = &route;
  entry.stream = &streams->nccl[number];
  entry.scratch = &streams->scratch[number];
  entry.scratch->restart();
  if (work.use != nullptr) HVD_TRY(work.use->hold_back(entry.stream->handle()));
  HVD_TRY(copy_overlapping(entry, work));
  const auto plan_in = [&](std::byte* scratch) {
    return plan_launch(work, {options_.size, options_.me, levels}, route.decision.abilities,
                       scratch);
  };
  entry.plan = plan_in(nullptr);
  if (entry.plan.scratch_bytes > 0) {
    HVD_TRY_ASSIGN(std::byte* const scratch, entry.scratch->take(entry.plan.scratch_bytes));
    entry.plan = plan_in(scratch);
  }
  HVD_TRY(prepare(entry));
  entry.stages = stages_of(std::move(entry.plan.calls), levels, route.layout);
  return go_on(entry);
}

Status GpuBackend::run_kernels(const Entry& entry, const std::vector<KernelStep>& steps) {
  for (const KernelStep& step : steps) {
    HVD_TRY_ASSIGN(const GpuKernels* const kernels, GpuKernels::of(device_of(*entry.work)));
    HVD_TRY(kernels->run(step.kernel, step.segments, step.scale, entry.stream->handle()));
  }
  return Status::ok();
}

// What comes before NCCL.
Status GpuBackend::prepare(Entry& entry) {
  LaunchPlan& plan = entry.plan;
  for (const Stretch& stretch : plan.zeros)
    HVD_TRY(entry.stream->zero(stretch.begin, stretch.bytes));
  if (plan.scratch_bytes > 0) tell(*entry.work, "MEMCPY_IN_FUSION_BUFFER");
  HVD_TRY(run_kernels(entry, plan.before));
  return replace_missing(entry, plan.calls);
}

// Begins stages until one has to be waited for; the next follows when NCCL has put this one into
// the stream.
Status GpuBackend::go_on(Entry& entry) {
  while (entry.stage < entry.stages.size()) {
    const Stage& stage = entry.stages[entry.stage];
    if (stage.reach == Reach::kHostMemory) return begin_middle(entry);
    tell(*entry.work, stage.activity);
    HVD_TRY(entry.route->comms.at(stage.reach).launch(stage.calls, entry.stream->handle()));
    ++entry.stage;
    HVD_TRY_ASSIGN(const bool is_ready, entry.route->comms.are_ready());
    entry.is_launching = !is_ready;
    if (entry.is_launching) return Status::ok();
  }
  return note_launched(entry);
}

// In the agreed order: when the works before this one need no host memory any more.
Status GpuBackend::begin_middle(Entry& entry) {
  for (const Entry& earlier : entries_) {
    if (&earlier == &entry) break;
    if (earlier.uses_lane()) return Status::ok();
  }
  const Stage& stage = entry.stages[entry.stage];
  tell(*entry.work, stage.activity);
  const int device = device_of(*entry.work);
  HVD_TRY_ASSIGN(Streams* const streams, streams_of(device));
  HVD_TRY_ASSIGN(device::Event reduced, device::Event::take(device));
  HVD_TRY(reduced.record(entry.stream->handle()));
  HVD_TRY(reduced.hold_back(streams->in.handle()));
  make_middle(stage.calls, entry.route->layout, entry.middle);
  entry.middle.cut = entry.work->cut;
  entry.staging = std::make_unique<Staging>(
      entry.middle,
      StagingMeans{lane_, streams->in, streams->out, streams->memory, waker_, device});
  return Status::ok();
}

Status GpuBackend::look_at_staging(Entry& entry, bool& moved) {
  const Progress progress = entry.staging->advance();
  HVD_TRY(entry.staging->status());
  moved = moved || progress != Progress::kBlocked;
  if (progress != Progress::kDone) return Status::ok();
  if (entry.route == nullptr) {
    entry.is_over = true;
    return Status::ok();
  }
  if (entry.work->status.is_ok()) entry.work->status = entry.middle.status;
  entry.staging.reset();
  ++entry.stage;
  return go_on(entry);
}

// Moves an entry on, if its stream has.
Status GpuBackend::look_at(Entry& entry, bool& moved) {
  if (entry.is_over) return Status::ok();
  HVD_TRY_ASSIGN(const device::Current current, device::Current::enter(device_of(*entry.work)));
  if (entry.route != nullptr) {
    HVD_TRY_ASSIGN(const bool is_ready, entry.route->comms.are_ready());
    if (!is_ready) return Status::ok();
  }
  if (entry.staging != nullptr) return look_at_staging(entry, moved);
  if (!entry.is_launched()) {
    moved = moved || entry.is_launching;
    entry.is_launching = false;
    HVD_TRY(go_on(entry));
    moved = moved || entry.staging != nullptr;
    if (entry.is_over || !entry.is_launched()) return Status::ok();
  }
  HVD_TRY_ASSIGN(entry.is_over, entry.done.is_over());
  moved = moved || entry.is_over;
  return Status::ok();
}

// Everything of NCCL is in the stream: our own comes behind it, and its end can be marked.
Status GpuBackend::note_launched(Entry& entry) {
  if (entry.plan.scratch_bytes > 0) tell(*entry.work, "MEMCPY_OUT_FUSION_BUFFER");
  HVD_TRY(run_kernels(entry, entry.plan.after));
  HVD_TRY_ASSIGN(entry.done, device::Event::take(device_of(*entry.work)));
  HVD_TRY(entry.done.record(entry.stream->handle()));
  const bool may_end_now = options_.async_completion && entry.work->use != nullptr;
  if (!may_end_now) return Waker::wake_after(waker_, *entry.stream);
  entry.route->late = entry.stream;
  entry.work->use->done = std::move(entry.done);
  entry.is_over = true;
  return Status::ok();
}

}  // namespace hvd::collective::gpu
