// Submissions and waiting: what callers' threads do.
#include <algorithm>

#include "base/text.h"
#include "engine/drive/affinity.h"
#include "engine/engine.h"
#include "engine/engine_wait.inc.h"
#include "negotiate/validate.h"

namespace hvd::engine {

Result<Channel*> Engine::channel_of(int32_t set, std::string_view what) {
  if (Channel* channel = registry_.channel(set)) return channel;
  const auto ranks = registry_.ranks(set);
  if (!ranks) return invalid_argument(concat(what, ": process set ", set, " does not exist"));
  return invalid_argument(concat(what, ": rank ", topology_.rank,
                                 " is not a member of process set ", set, " [",
                                 join_text(*ranks, ", ", 16), "]"));
}

uint64_t Engine::pending_count() const {
  return submitted_.load(std::memory_order_relaxed) - finished_.load(std::memory_order_relaxed);
}

void Engine::completed(Operation& op) {
  finished_.store(finished_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (HVD_UNLIKELY(tuner_ != nullptr)) note_reduction(op);
  if (op.handle == 0) {  // a one-call form
    op.state.store(static_cast<uint32_t>(OperationState::kDone), std::memory_order_release);
    return;
  }
  completed_with_handle(op);
}

void Engine::completed_with_handle(Operation& op) {
  if (op.needs_background) background_operations_.fetch_sub(1, std::memory_order_relaxed);
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
  if (HVD_UNLIKELY(local_waiters_.load(std::memory_order_seq_cst) != 0)) notify_local_waiters();
}

void Engine::notify_local_waiters() {
  local_event_.fetch_add(1, std::memory_order_seq_cst);
  shm::futex_wake(local_event_, INT32_MAX);
}

void Engine::ring_sleepers() {
  for (Channel* channel : registry_.open_channels()) channel->ring();
}

void Engine::give_role_back() {
  role_.give_back();
  if (HVD_UNLIKELY(local_waiters_.load(std::memory_order_seq_cst) != 0)) notify_local_waiters();
  if (HVD_UNLIKELY(job_->header().parked.load(std::memory_order_seq_cst) != 0)) global_->ring();
}

// A waiter gives the role back: is there work that needs an engine, and nobody to do it?
void Engine::leave() {
  for (;;) {
    const uint64_t seen = submitted_.load(std::memory_order_relaxed);
    bool wake = false;
    if (HVD_UNLIKELY(seen != finished_.load(std::memory_order_relaxed))) {
      const StepResult result = step_all(Channel::Effort::kAllSmall);
      wake = background_operations_.load(std::memory_order_relaxed) != 0 ||
             (result == StepResult::kLargeWaiting && has_idle_cores_ &&
              settings_.progress != ProgressPolicy::kWaiter);
    }
    give_role_back();
    if (HVD_UNLIKELY(wake)) job_->wake_background(job_->rank());
    // Another thread that submitted while we held the role relied on us.
    if (HVD_LIKELY(submitted_.load(std::memory_order_seq_cst) == seen) || !role_.try_take()) return;
  }
}

StepResult Engine::step_all(Channel::Effort effort) {
  const bool pumped = pump();
  StepResult result = StepResult::kNothing;
  if (HVD_UNLIKELY(set_changes_.any())) settle_set_changes();
  // By index: an operation of the global set may open or close a channel.
  for (size_t i = 0; i < registry_.open_channels().size(); ++i) {
    Channel& channel = *registry_.open_channels()[i];
    const StepResult one = channel.step(effort);
    if (one == StepResult::kAdvanced ||
        (one == StepResult::kLargeWaiting && result == StepResult::kNothing))
      result = one;
    if (HVD_UNLIKELY(!channel.failure().is_ok() && !is_broken_.load(std::memory_order_relaxed))) {
      fail(channel.failure(), topology_.rank);
      fail_everything(health());
      return StepResult::kAdvanced;
    }
  }
  if (HVD_UNLIKELY(mark_cycles_.load(std::memory_order_relaxed)) &&
      result == StepResult::kAdvanced) {
    if (trace::Timeline* trace = timeline_.load(std::memory_order_acquire)) trace->mark_cycle();
  }
  return pumped && result == StepResult::kNothing ? StepResult::kAdvanced : result;
}

// ---- one call
// --------------------------------------------------------------------------------------------

template <typename Admit>
Status Engine::run_here(Channel& channel, const Admit& admit,
                        Deadline deadline) HVD_NO_THREAD_SAFETY_ANALYSIS {
  role_.note_taken();
  submit_lock_.note_taken();
  Operation& op = *sync_operation_;
  op.reset();
  auto& word = job_->mine().role;
  if (Status status = admit(op); HVD_UNLIKELY(!status.is_ok())) {
    submit_lock_.note_free();
    word.store(shm::kRoleBit, std::memory_order_release);
    leave();
    return told(std::move(status));
  }
  channel.publish_now(op);
  submitted_.store(submitted_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  submit_lock_.note_free();
  word.store(shm::kRoleBit,
             std::memory_order_release);  // both bits are ours: a plain store drops one
  drive(
      channel, [&] { return op.state.load(std::memory_order_relaxed) != 0; }, deadline);
  if (HVD_UNLIKELY(mark_cycles_.load(std::memory_order_relaxed))) {
    if (trace::Timeline* trace = timeline_.load(std::memory_order_acquire)) trace->mark_cycle();
  }
  if (HVD_LIKELY(op.is_done() && op.status.is_ok())) {
    leave();
    return Status::ok();
  }
  return end_run(op);
}

// It failed, or the deadline has passed.
Status Engine::end_run(Operation& op) {
  Status status(StatusCode::kTimedOut, "the operation is not complete yet");
  if (op.is_done()) {
    status = op.status;
  } else {
    late_operations_.push_back(std::move(sync_operation_));
    sync_operation_ = std::make_unique<Operation>();
    std::erase_if(late_operations_, [](const auto& late) { return late->is_done(); });
  }
  leave();
  return status;
}

Status Engine::run(int32_t set, const Submission& s, Deadline deadline) {
  Channel* channel = registry_.channel(set);
  uint32_t free = 0;
  const bool here = channel != nullptr && s.progress != ProgressPolicy::kBackground &&
                    s.on_complete == nullptr && s.device < 0 &&
                    !is_broken_.load(std::memory_order_relaxed) &&
                    !is_closing_.load(std::memory_order_relaxed) &&
                    job_->mine().role.compare_exchange_strong(free, shm::kRoleBit | shm::kSubmitBit,
                                                              std::memory_order_acquire);
  if (HVD_UNLIKELY(!here)) return run_slowly(set, s, deadline);
  return run_here(
      *channel, [&](Operation& op) { return channel->admit(s, op); }, deadline);
}

Status Engine::run_slowly(int32_t set, const Submission& s, Deadline deadline) {
  HVD_TRY_ASSIGN(const uint64_t handle, submit(set, s));
  Status status = wait(handle, deadline);
  HVD_TRY(release(handle));
  return status;
}

Status Engine::admit_prepared(Channel& channel, Prepared& prepared, Operation& op) {
  if (HVD_LIKELY(prepared.slot != nullptr && prepared.slot->is_live && prepared.name != nullptr)) {
    return channel.admit_prepared(prepared.slot, prepared.name, prepared.submission(), op);
  }
  HVD_TRY(channel.admit(prepared.submission(), op));
  prepared.slot = op.slot;
  prepared.name = op.slot != nullptr ? op.name : nullptr;
  return Status::ok();
}

Status Engine::check_prepared(const Prepared& prepared) const {
  if (prepared.engine_number == number_) return Status::ok();
  return invalid_argument(
      "prepared submission: it belongs to a job that has been shut down; prepare it again");
}

Status Engine::run(Prepared& prepared, Deadline deadline) {
  HVD_TRY(check_prepared(prepared));
  Channel* channel = prepared.channel;
  uint32_t free = 0;
  const bool here =
      prepared.submission().progress != ProgressPolicy::kBackground &&
      prepared.submission().on_complete == nullptr && prepared.submission().device < 0 &&
      !is_broken_.load(std::memory_order_relaxed) && !is_closing_.load(std::memory_order_relaxed) &&
      registry_.channel(prepared.set()) == channel &&
      job_->mine().role.compare_exchange_strong(free, shm::kRoleBit | shm::kSubmitBit,
                                                std::memory_order_acquire);
  if (HVD_UNLIKELY(!here)) return run_slowly(prepared.set(), prepared.submission(), deadline);
  return run_here(
      *channel, [&](Operation& op) { return admit_prepared(*channel, prepared, op); }, deadline);
}

// ---- asynchronous
// ----------------------------------------------------------------------------------------

template <typename Admit>
Result<uint64_t> Engine::submit_here(Channel& channel, const Admit& admit) {
  Operation& op = handles_.create();
  const uint64_t handle = op.handle;
  bool waiter_only = false;
  bool in_background = false;
  {
    submit_lock_.lock();
    Status status = admit(op);
    if (HVD_LIKELY(status.is_ok())) {
      in_background = op.needs_background;
      if (in_background) background_operations_.fetch_add(1, std::memory_order_relaxed);
      waiter_only = op.waiter_only;
      channel.publish(op);
      submitted_.store(submitted_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    submit_lock_.unlock();
    if (HVD_UNLIKELY(!status.is_ok())) {
      handles_.discard(op);
      return told(std::move(status));
    }
  }
  channel.ring();
  after_submit(channel, in_background, waiter_only);
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

Result<uint64_t> Engine::submit(int32_t set, const Submission& s) {
  if (Status failure = health(); !failure.is_ok()) return told(std::move(failure));
  HVD_TRY_ASSIGN(Channel* const channel, channel_of(set, wire::kind_lower_name(s.kind)));
  HVD_TRY_ASSIGN(device::Use use, use_of(s));
  return submit_here(*channel, [&](Operation& op) {
    HVD_TRY(channel->admit(s, op));
    return keep_use(use, op);
  });
}

Result<uint64_t> Engine::submit(Prepared& prepared) {
  HVD_TRY(check_prepared(prepared));
  if (Status failure = health(); !failure.is_ok()) return told(std::move(failure));
  HVD_TRY_ASSIGN(Channel* const channel, channel_of(prepared.set(), "prepared submission"));
  if (channel != prepared.channel)
    return invalid_argument("prepared submission: its process set was removed");
  HVD_TRY_ASSIGN(device::Use use, use_of(prepared.submission()));
  return submit_here(*channel, [&](Operation& op) {
    HVD_TRY(admit_prepared(*channel, prepared, op));
    return keep_use(use, op);
  });
}

Result<std::unique_ptr<Prepared>> Engine::prepare(int32_t set, const Submission& s) {
  if (Status failure = health(); !failure.is_ok()) return told(std::move(failure));
  HVD_TRY_ASSIGN(Channel* const channel, channel_of(set, wire::kind_lower_name(s.kind)));
  HVD_TRY(negotiate::validate_local(make_request(s), channel->ranks()));
  auto prepared = std::make_unique<Prepared>(set, s);
  prepared->channel = channel;
  prepared->engine_number = number_;
  return prepared;
}

void Engine::after_submit(Channel&, bool in_background, bool waiter_only) {
  if (in_background) {
    job_->wake(job_->rank());  // the background thread may sleep with the role
    job_->wake_background(job_->rank());
    return;
  }
  if (!role_.try_take()) return;
  const StepResult result = step_all(Channel::Effort::kAllSmall);
  if (HVD_UNLIKELY(is_broken_.load(std::memory_order_relaxed))) handle_failures();
  leave();
  if (result != StepResult::kLargeWaiting || waiter_only || !has_idle_cores_) return;
  // Agreed large work and nobody drives: with a core to spare it can overlap with the caller's
  // computation.
  for (int rank = 0; rank < job_->size(); ++rank) {
    if (!job_->is_driven(rank)) job_->wake_background(rank);
  }
}

// ---- handles
// ---------------------------------------------------------------------------------------------

namespace {

Status unknown_handle(uint64_t handle) {
  return invalid_argument(concat("handle ", handle, " is unknown: never given out, or released"));
}

}  // namespace

Status Engine::poll(uint64_t handle) {
  Operation* op = handles_.find(handle);
  if (op == nullptr) return unknown_handle(handle);
  const bool found_done = op->is_done();
  const bool first = handles_.first_poll(*op);
  // A success is never reported by the first poll; a failure always is.
  const bool tell = found_done && (!first || !op->status.is_ok());
  const Status found = tell ? op->status : Status(StatusCode::kInProgress, "in progress");
  if (!found_done && role_.try_take()) {
    step_all(Channel::Effort::kEverything);
    if (is_broken_.load(std::memory_order_relaxed)) handle_failures();
    leave();
  }
  return found;
}

Status Engine::wait(uint64_t handle, Deadline deadline) {
  Operation* op = handles_.find(handle);
  if (op == nullptr) return unknown_handle(handle);
  HVD_TRY(wait_until([&] { return op->is_done(); }, *op->channel, deadline));
  handles_.first_poll(*op);  // whoever has waited knows
  HVD_TRY(op->status);
  return op->use.order(op->use.stream);
}

Status Engine::wait_many(const uint64_t* handles, size_t count, Deadline deadline) {
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
  HVD_TRY(wait_until(all_done, *ops[0]->channel, deadline));
  for (Operation* op : ops) handles_.first_poll(*op);
  for (const Operation* op : ops) {
    if (!op->status.is_ok()) return op->status;
  }
  for (const Operation* op : ops) HVD_TRY(op->use.order(op->use.stream));
  return Status::ok();
}

Status Engine::release(uint64_t handle) {
  // Complete, but perhaps still in a stream: whoever gets the memory next in the caller's stream
  // comes after it, also if nobody has waited.
  const Operation* op = handles_.find(handle);
  if (op != nullptr && op->is_done()) (void)op->use.order(op->use.stream);
  return handles_.release(handle) ? Status::ok() : unknown_handle(handle);
}

Result<Operation*> Engine::completed_operation(uint64_t handle) {
  Operation* op = handles_.find(handle);
  if (op == nullptr) return unknown_handle(handle);
  if (!op->is_done()) return Status(StatusCode::kInProgress, "the operation is not complete yet");
  return op;
}

const Output& Engine::keep_output(Operation& op, size_t index) {
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

// ---- join, barrier, process sets, buffers
// ----------------------------------------------------------------

Result<int32_t> Engine::join(Deadline deadline) {
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

Status Engine::barrier(int32_t set, Deadline deadline) {
  const int64_t empty = 0;
  TensorArg tensor;
  tensor.name = kBarrierName;
  tensor.dtype = DType::kUint8;
  tensor.shape = {&empty, 1};
  Submission s;
  s.kind = wire::Kind::kBarrier;
  s.tensors = {&tensor, 1};
  return run(set, s, deadline);
}

Result<Engine::AddedSet> Engine::add_process_set(std::vector<int32_t> ranks) {
  HVD_TRY(check_set_ranks(ranks, topology_.size));
  Submission s;
  s.kind = wire::Kind::kProcessSetAdd;
  s.ranks = ranks;
  HVD_TRY_ASSIGN(const uint64_t handle, submit(0, s));
  const Status status = wait(handle, Deadline::never());
  AddedSet added{-1, true};
  if (auto op = completed_operation(handle)) {
    added.is_new = !(*op)->existing_set;
    added.id = (*op)->existing_set.value_or((*op)->number);
  }
  HVD_TRY(release(handle));
  if (added.is_new) HVD_TRY(status);
  return added;
}

Result<bool> Engine::remove_process_set(int32_t id) {
  if (id <= 0) return false;
  Submission s;
  s.kind = wire::Kind::kProcessSetRemove;
  s.ranks = {&id, 1};
  HVD_TRY_ASSIGN(const uint64_t handle, submit(0, s));
  const Status status = wait(handle, Deadline::never());
  HVD_TRY(release(handle));
  if (status.code() == StatusCode::kInvalidArgument)
    return false;  // the same everywhere: no such set
  HVD_TRY(status);
  return true;
}

// Agreed by all ranks at this place of the global order. Needs the role.
Status Engine::begin_internal(const wire::Request& request,
                              Operation& op) HVD_NO_THREAD_SAFETY_ANALYSIS {
  if (request.kind == wire::Kind::kProcessSetRemove) {
    const int32_t id = request.ranks.at(0);
    op.work.reset(collective::WorkKind::kFence);  // nothing to run
    Channel* channel = registry_.channel(id);
    HVD_TRY(registry_.remove(id));
    if (channel != nullptr) {
      channel->detach();
      channel->close(Status(StatusCode::kAborted, concat("process set ", id, " has been removed")));
    }
    return Status::ok();
  }
  op.existing_set = registry_.find(request.ranks);
  HVD_TRY_ASSIGN(const SetRegistry::Place place, registry_.reserve(request.ranks));
  op.number = place.id;
  ++generation_;
  opening_sets_[place.id] = place;
  const uint64_t offset = job_->channel_pool_offset() + place.offset;
  op.work.reset(collective::WorkKind::kFence);
  // A region may have belonged to a set that was removed: it starts as zeros again, when nobody
  // uses it any more.
  op.work.leader_action = [this, offset, place] {
    HVD_TRY(job_->segment().discard(offset, place.bytes));
    return job_->segment().commit_if_limited(offset, place.bytes);
  };
  return Status::ok();
}

void Engine::end_internal(Operation& op) HVD_NO_THREAD_SAFETY_ANALYSIS {
  if (op.kind != wire::Kind::kProcessSetAdd || op.number < 0 || opening_sets_.count(op.number) == 0)
    return;
  const SetRegistry::Place place = opening_sets_.at(op.number);
  opening_sets_.erase(op.number);
  if (!op.status.is_ok()) return fail(op.status, topology_.rank);
  const std::vector<int32_t>& ranks = op.slot->requests[0].ranks;
  const auto me = std::find(ranks.begin(), ranks.end(), topology_.rank);
  std::unique_ptr<Channel> channel;
  if (me != ranks.end()) {
    channel = std::make_unique<Channel>(*this, channel_options(place.id, ranks),
                                        job_->base() + job_->channel_pool_offset() + place.offset);
    channel->propose(global_->tuning());
  }
  registry_.open(place, std::move(channel));
}

Result<void*> Engine::alloc_buffer(size_t bytes) {
  HVD_TRY_ASSIGN(std::byte* const data, job_->arena().alloc(bytes));
  return static_cast<void*>(data);
}

Status Engine::free_buffer(void* data) { return job_->arena().free(data); }

// ---- background thread
// -----------------------------------------------------------------------------------

bool Engine::background_has_work() {
  if (is_broken_.load(std::memory_order_relaxed)) return pending_count() != 0;
  const StepResult result = step_all(Channel::Effort::kAllSmall);
  if (background_operations_.load(std::memory_order_seq_cst) != 0) return true;
  return result == StepResult::kLargeWaiting && settings_.progress != ProgressPolicy::kWaiter;
}

void Engine::run_background(const std::stop_token& stop) {
  statistics_.background_runs.add();
  constexpr int kIdlePolls = 200;
  for (int idle = 0; !stop.stop_requested();) {
    if (HVD_UNLIKELY(is_broken_.load(std::memory_order_relaxed))) return handle_failures();
    const bool has_own_work = background_operations_.load(std::memory_order_relaxed) != 0;
    if (step_all(Channel::Effort::kEverything) == StepResult::kAdvanced) {
      idle = 0;
      // A thread that waits drives better than we do: no hand-off when it is done.
      if (!has_own_work && local_waiters_.load(std::memory_order_seq_cst) != 0) return;
      continue;
    }
    if (!has_own_work && !is_busy()) return;
    if (++idle < kIdlePolls) {
      cpu_pause();
    } else {
      ring_sleepers();
      for (Channel* channel : registry_.open_channels())
        statistics_.late_rings.add(channel->ring_late_peers());
      const auto called_off = [&] {
        return stop.stop_requested() ||
               (!has_own_work && local_waiters_.load(std::memory_order_seq_cst) != 0);
      };
      background_sleeps_with_role_.store(true, std::memory_order_seq_cst);
      park(*global_, called_off, Deadline::never());
      background_sleeps_with_role_.store(false, std::memory_order_seq_cst);
      if (called_off()) return;
    }
  }
}

void Engine::background_main(const std::stop_token& stop) {
  pthread_setname_np(pthread_self(), "hvd-engine");
  pin_to_core(settings_.thread_affinity, topology_.local_rank, topology_.local_size);
  auto& parked = job_->mine().background;
  while (!stop.stop_requested()) {
    if (role_.try_take()) {
      if (background_has_work()) run_background(stop);
      give_role_back();
    }
    parked.store(1, std::memory_order_seq_cst);
    bool work = false;
    if (!stop.stop_requested() && role_.try_take()) {
      work = background_has_work();
      give_role_back();
    }
    if (!work && !stop.stop_requested()) shm::futex_wait(parked, 1, std::chrono::hours(1));
    parked.store(0, std::memory_order_seq_cst);
  }
}

}  // namespace hvd::engine
