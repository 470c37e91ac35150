#include "engine/submissions.h"

#include <algorithm>

#include "base/text.h"
#include "engine/drive/driver.inc.h"
#include "engine/operation/in_callback.h"
#include "negotiate/validate.h"

namespace hvd::engine {

Submissions::Submissions(const SubmissionsView& view)
    : view_(view),
      both_(view.role, view.submit_lock),
      handles_(view.surroundings.engine_number),
      sync_operation_(std::make_unique<Operation>()) {}

void Submissions::completed_with_handle(Operation& op) {
  if (op.needs_background) view_.pending.remove_background();
  const CallbackFn callback = op.on_complete;
  if (HVD_LIKELY(callback == nullptr)) {
    handles_.completed(op);
  } else {
    void* context = op.callback_context;
    const uint64_t handle = op.handle;
    const Status status = op.status;
    handles_.completed(op, HandleTable::Keep::kYes);  // the handle is valid in the callback
    const InCallback scope;
    callback(context, handle, static_cast<int>(status.code()), status.message().c_str());
    handles_.let_go(op);
  }
  view_.waiters.notify_if_any();
}

template <typename Admit>
Status Submissions::run_here(Channel& channel, const Admit& admit, Deadline deadline) {
  Operation& op = *sync_operation_;
  op.reset();
  if (Status status = admit(op); HVD_UNLIKELY(!status.is_ok())) {
    both_.drop_submit();
    view_.driver.leave();
    return view_.failure.told(std::move(status));
  }
  channel.publish_now(op);
  view_.pending.note_submitted();
  both_.drop_submit();
  view_.driver.drive(
      channel, [&] { return op.state.load(std::memory_order_relaxed) != 0; }, deadline);
  view_.timelines.mark_cycle();
  if (HVD_LIKELY(op.is_done() && op.status.is_ok())) {
    view_.driver.leave();
    return Status::ok();
  }
  return end_run(op);
}

// It failed, or the deadline has passed.
Status Submissions::end_run(Operation& op) {
  Status status(StatusCode::kTimedOut, "the operation is not complete yet");
  if (op.is_done()) {
    status = op.status;
  } else {
    late_operations_.push_back(std::move(sync_operation_));
    sync_operation_ = std::make_unique<Operation>();
    std::erase_if(late_operations_, [](const auto& late) { return late->is_done(); });
  }
  view_.driver.leave();
  return status;
}

Status Submissions::run(int32_t set, const Submission& s, Deadline deadline) {
  Channel* channel = view_.sets.registry().channel(set);
  const bool here = channel != nullptr && may_run_here(s) && both_.try_take();
  if (HVD_UNLIKELY(!here)) return run_slowly(set, s, deadline);
  return run_here(
      *channel, [&](Operation& op) HVD_REQUIRES(submit_side) { return channel->admit(s, op); },
      deadline);
}

Status Submissions::run_slowly(int32_t set, const Submission& s, Deadline deadline) {
  HVD_TRY_ASSIGN(const uint64_t handle, submit(set, s));
  Status status = wait(handle, deadline);
  HVD_TRY(release(handle));
  return status;
}

Status Submissions::admit_prepared(Channel& channel, Prepared& prepared, Operation& op) {
  if (HVD_LIKELY(prepared.slot != nullptr && prepared.slot->is_live && prepared.name != nullptr)) {
    return channel.admit_prepared(prepared.slot, prepared.name, prepared.submission(), op);
  }
  HVD_TRY(channel.admit(prepared.submission(), op));
  prepared.slot = op.slot;
  prepared.name = op.slot != nullptr ? op.name : nullptr;
  return Status::ok();
}

Status Submissions::check_prepared(const Prepared& prepared) const {
  if (prepared.engine_number == view_.surroundings.engine_number) return Status::ok();
  return invalid_argument(
      "prepared submission: it belongs to a job that has been shut down; prepare it again");
}

Status Submissions::run(Prepared& prepared, Deadline deadline) {
  HVD_TRY(check_prepared(prepared));
  Channel* channel = prepared.channel;
  const bool here = may_run_here(prepared.submission()) &&
                    view_.sets.registry().channel(prepared.set()) == channel && both_.try_take();
  if (HVD_UNLIKELY(!here)) return run_slowly(prepared.set(), prepared.submission(), deadline);
  return run_here(
      *channel,
      [&](Operation& op)
          HVD_REQUIRES(submit_side) { return admit_prepared(*channel, prepared, op); },
      deadline);
}

template <typename Admit>
Result<uint64_t> Submissions::submit_here(Channel& channel, const Admit& admit) {
  Operation& op = handles_.create();
  const uint64_t handle = op.handle;
  bool waiter_only = false;
  bool in_background = false;
  {
    view_.submit_lock.lock();
    Status status = admit(op);
    if (HVD_LIKELY(status.is_ok())) {
      in_background = op.needs_background;
      if (in_background) view_.pending.add_background();
      waiter_only = op.waiter_only;
      channel.publish(op);
      view_.pending.note_submitted();
    }
    view_.submit_lock.unlock();
    if (HVD_UNLIKELY(!status.is_ok())) {
      handles_.discard(op);
      return view_.failure.told(std::move(status));
    }
  }
  channel.ring();
  view_.driver.after_submit(in_background, waiter_only);
  return handle;
}

namespace {

// Before any lock: marks the place in the caller's stream that the operation has to wait for.
Result<device::Use> use_of(const Submission& s) {
  if (HVD_LIKELY(s.device < 0) || s.tensors.empty()) return device::Use{};
  auto use = device::Use::begin(s.device, s.stream);
  if (use) return use;
  return Status(use.status().code(), concat(wire::kind_lower_name(s.kind), " '", s.tensors[0].name,
                                            "': ", use.status().message()));
}

// After a successful admission.
Status keep_use(device::Use& use, Operation& op) {
  if (HVD_LIKELY(use.device < 0)) return Status::ok();
  op.use = std::move(use);
  op.is_used_up = true;
  return Status::ok();
}

}  // namespace

Result<uint64_t> Submissions::submit(int32_t set, const Submission& s) {
  if (Status failure = view_.failure.health(); !failure.is_ok())
    return view_.failure.told(std::move(failure));
  HVD_TRY_ASSIGN(Channel* const channel, view_.sets.channel_of(set, wire::kind_lower_name(s.kind)));
  HVD_TRY_ASSIGN(device::Use use, use_of(s));
  return submit_here(*channel, [&](Operation& op) HVD_REQUIRES(submit_side) {
    HVD_TRY(channel->admit(s, op));
    return keep_use(use, op);
  });
}

Result<uint64_t> Submissions::submit(Prepared& prepared) {
  HVD_TRY(check_prepared(prepared));
  if (Status failure = view_.failure.health(); !failure.is_ok())
    return view_.failure.told(std::move(failure));
  HVD_TRY_ASSIGN(Channel* const channel,
                 view_.sets.channel_of(prepared.set(), "prepared submission"));
  if (channel != prepared.channel)
    return invalid_argument("prepared submission: its process set was removed");
  HVD_TRY_ASSIGN(device::Use use, use_of(prepared.submission()));
  return submit_here(*channel, [&](Operation& op) HVD_REQUIRES(submit_side) {
    HVD_TRY(admit_prepared(*channel, prepared, op));
    return keep_use(use, op);
  });
}

Result<std::unique_ptr<Prepared>> Submissions::prepare(int32_t set, const Submission& s) {
  if (Status failure = view_.failure.health(); !failure.is_ok())
    return view_.failure.told(std::move(failure));
  HVD_TRY_ASSIGN(Channel* const channel, view_.sets.channel_of(set, wire::kind_lower_name(s.kind)));
  HVD_TRY(negotiate::validate_local(make_request(s), channel->ranks()));
  auto prepared = std::make_unique<Prepared>(set, s);
  prepared->channel = channel;
  prepared->engine_number = view_.surroundings.engine_number;
  return prepared;
}

namespace {

Status unknown_handle(uint64_t handle) {
  return invalid_argument(concat("handle ", handle, " is unknown: never given out, or released"));
}

}  // namespace

Status Submissions::poll(uint64_t handle) {
  Operation* op = handles_.find(handle);
  if (op == nullptr) return unknown_handle(handle);
  const bool found_done = op->is_done();
  const bool first = handles_.first_poll(*op);
  // A success is never reported by the first poll; a failure always is.
  const bool tell = found_done && (!first || !op->status.is_ok());
  const Status found = tell ? op->status : Status(StatusCode::kInProgress, "in progress");
  if (!found_done && view_.driver.try_take_role()) {
    view_.driver.step_all(Channel::Effort::kEverything);
    if (view_.failure.is_broken()) view_.lookout.handle_failures();
    view_.driver.leave();
  }
  return found;
}

Status Submissions::wait(uint64_t handle, Deadline deadline) {
  Operation* op = handles_.find(handle);
  if (op == nullptr) return unknown_handle(handle);
  HVD_TRY(view_.driver.wait_until([&] { return op->is_done(); }, *op->channel, deadline));
  handles_.first_poll(*op);  // whoever has waited knows
  HVD_TRY(op->status);
  return op->use.order(op->use.stream);
}

Status Submissions::wait_many(const uint64_t* handles, size_t count, Deadline deadline) {
  std::vector<Operation*> ops(count);
  for (size_t i = 0; i < count; ++i) {
    ops[i] = handles_.find(handles[i]);
    if (ops[i] == nullptr) return unknown_handle(handles[i]);
  }
  if (count == 0) return Status::ok();
  size_t done_count = 0;
  const auto all_done = [&] {
    while (done_count < count && ops[done_count]->is_done()) ++done_count;
    return done_count == count;
  };
  HVD_TRY(view_.driver.wait_until(all_done, *ops[0]->channel, deadline));
  for (Operation* op : ops) handles_.first_poll(*op);
  for (const Operation* op : ops) {
    if (!op->status.is_ok()) return op->status;
  }
  for (const Operation* op : ops) HVD_TRY(op->use.order(op->use.stream));
  return Status::ok();
}

Status Submissions::release(uint64_t handle) {
  // Complete, but perhaps still in a stream: whoever gets the memory next in the caller's stream
  // comes after it, also if nobody has waited.
  const Operation* op = handles_.find(handle);
  if (op != nullptr && op->is_done()) (void)op->use.order(op->use.stream);
  return handles_.release(handle) ? Status::ok() : unknown_handle(handle);
}

Result<Operation*> Submissions::completed_operation(uint64_t handle) {
  Operation* op = handles_.find(handle);
  if (op == nullptr) return unknown_handle(handle);
  if (!op->is_done()) return Status(StatusCode::kInProgress, "the operation is not complete yet");
  return op;
}

const Output& Submissions::keep_output(Operation& op, size_t index) {
  // Operations in place keep no outputs of their own: what the caller gave is what it gets.
  for (size_t t = op.outputs.size(); t <= index; ++t) {
    const wire::TensorSpec& tensor = op.slot->requests[0].tensors[t];
    Output output;
    output.shape = tensor.shape;
    output.data = op.buffers[t].output;
    output.bytes = tensor.bytes();
    op.outputs.push_back(std::move(output));
  }
  return op.outputs[index];
}

Result<int32_t> Submissions::join(Deadline deadline) {
  Submission s;
  s.kind = wire::Kind::kJoin;
  HVD_TRY_ASSIGN(const uint64_t handle, submit(0, s));
  const Status status = wait(handle, deadline);
  int32_t last = -1;
  if (auto op = completed_operation(handle)) last = (*op)->number;
  HVD_TRY(release(handle));
  HVD_TRY(status);
  return last;
}

}  // namespace hvd::engine
