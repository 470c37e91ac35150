// The engine side of a channel: takes what is agreed and runs it.
#include <algorithm>
#include <cstring>

#include "base/explore.h"
#include "base/log.h"
#include "base/text.h"
#include "engine/channel/channel.h"
#include "engine/channel/small_operations.h"
#include "engine/channel/works.h"
#include "negotiate/validate.h"

namespace hvd::engine {

using control::Look;
using control::Mark;
using control::Record;

namespace {

// All that is in a channel's table was made by adopt_plan().
CachedPtr cached_of(const negotiate::SlotPtr& slot) {
  return std::static_pointer_cast<CachedOperation>(slot);
}

}  // namespace

void Channel::fail(Status status) {
  if (failure_.is_ok()) {
    failure_ = Status(status.code(), concat("process set ", id(), ": ", status.message()));
  }
}

StepResult Channel::step(Effort effort) {
  try {
    return step_unguarded(effort);
  } catch (const std::bad_alloc&) {
    fail(Status(StatusCode::kOutOfMemory, "no memory to run an operation"));
    return StepResult::kNothing;
  }
}

StepResult Channel::step_unguarded(Effort effort) {
  if (HVD_UNLIKELY(is_closed())) return StepResult::kNothing;
  if (HVD_UNLIKELY(outbox_.has_queue())) {
    {
      SubmitGuard guard(host_.submit_lock());
      outbox_.flush();
    }
    ring();
  }
  StepResult result = StepResult::kNothing;
  while (failure_.is_ok()) {
    schedule_point(kNextOperation);
    const Look look = order_.next();
    // Decisions of this rank go to the other hosts before it acts on them.
    if (HVD_UNLIKELY(mirror_.is_open() && me() == 0 && order_.is_in_log_mode())) mirror_.flush();
    if (look == Look::kNothing) break;
    if (look == Look::kFailed) {
      fail(order_.failure());
      break;
    }
    if (look == Look::kUniform) {
      run_uniform();
    } else if (look == Look::kMatched) {
      run_matched();
    } else if (look == Look::kRefused) {
      finish_refused();
    } else {
      finish_join();
    }
    result = StepResult::kAdvanced;
    if (effort == Effort::kOne && works_.is_idle()) return result;
  }
  if (works_.is_idle() || !failure_.is_ok()) return result;
  if (effort == Effort::kAllSmall) return StepResult::kLargeWaiting;
  return advance_large() == StepResult::kAdvanced ? StepResult::kAdvanced : result;
}

StepResult Channel::advance_large() {
  const auto end = [this](Operation& op, const Status& status)
                       HVD_REQUIRES(engine_role) { finish(op, status); };
  return works_.advance(end) ? StepResult::kAdvanced : StepResult::kNothing;
}

std::optional<control::SlotIdentity> Channel::identify(uint32_t slot) {
  const negotiate::SlotPtr found = slots_.find_shared(slot);
  if (found == nullptr) return std::nullopt;
  return control::SlotIdentity{found->key, found->is_unnamed, found->kind(), found};
}

void Channel::saw_view(int rank, uint32_t view) {
  if (HVD_UNLIKELY(slots_.has_buried())) slots_.saw_view(rank, view);
}

// Lockstep, all ranks name the same slot: the fast path.
bool Channel::run_uniform() {
  Operation* op = outbox_.operation(order_.index_of(me()));
  if (HVD_UNLIKELY(op == nullptr || op->slot == nullptr || op->slot->id != order_.slot())) {
    fail(corrupted(concat("record ", order_.index_of(me()), " of this rank is not what it wrote")));
    return false;
  }
  if (HVD_UNLIKELY(!follow_tuning(order_.record_of(0).flags))) return false;
  CachedOperation& slot = *op->slot;
  slot.last_used = ++place_.agreed;
  if (slot.is_unnamed) ++place_.unnamed[static_cast<size_t>(slot.kind())];
  const int ranks = size();
  const bool check_views = slots_.has_buried();
  const std::byte* payloads[shm::kMaxRanks];
  bool deposited = slot.is_small(tuning_.small_limit());
  bool shared = slot.may_share;
  for (int rank = 0; rank < ranks; ++rank) {
    const Record& record = order_.record_of(rank);
    const uint32_t flags = record.flags;
    if (check_views) slots_.saw_view(rank, record.view);
    shared = shared && (flags & control::kSharedBuffers) != 0;
    if ((flags & (control::kSharedBuffers | control::kNoPayload)) != 0) {
      deposited = false;
    } else if (HVD_LIKELY((flags & control::kPayloadInline) != 0)) {
      payloads[rank] = record.payload;
    } else {
      payloads[rank] = board_.eager_range(rank, record.offset, record.length).data();
    }
    if (deposited && HVD_UNLIKELY(record.length != slot.deposit_of[static_cast<size_t>(rank)] ||
                                  (record.length > 0 && payloads[rank] == nullptr))) {
      fail(corrupted(concat("record ", order_.index_of(rank), " of rank ", rank_of(rank),
                            " deposits ", record.length, " bytes, expected ",
                            slot.deposit_of[static_cast<size_t>(rank)])));
      return false;
    }
  }
  if (HVD_LIKELY(deposited)) {
    if (HVD_LIKELY(slot.is_plain && slot.plain_count > 0 && op->buffers[0].output != nullptr &&
                   !op->is_traced)) {
      run_plain_allreduce(*op, slot, set_, payloads);
      statistics_.small_operations.add();
      order_.consume();
      finish_plain(*op);
      return true;
    }
    run_small(*op, slot, payloads);
    order_.consume();
    return true;
  }
  if (shared) {
    std::vector<Mark> marks(static_cast<size_t>(size()));
    if (Status status = order_.read_marks(marks); !status) {
      fail(status);
      return false;
    }
    run_large(*op, slot, marks);
  } else {
    run_large(*op, slot, {});
  }
  order_.consume();
  return true;
}

bool Channel::run_matched() {
  ++place_.agreed;
  const std::span<Mark> marks = order_.marks();
  if (marks[0].present && HVD_UNLIKELY(!follow_tuning(marks[0].flags))) return false;
  const Mark* first = nullptr;
  bool cached = true;
  for (const Mark& mark : marks) {
    if (!mark.present) continue;
    if (first == nullptr) first = &mark;
    cached = cached && mark.slot == first->slot && mark.slot != control::kNoSlot;
  }
  const CachedPtr slot = cached ? cached_of(first->slot_owner) : nullptr;
  // A cached allgather while a rank has joined is an error all the same: let validation say so.
  const bool usable = slot != nullptr && (slot->is_live || order_.is_uniform_match()) &&
                      (!order_.anybody_joined() || slot->kind() == wire::Kind::kAllreduce ||
                       slot->kind() == wire::Kind::kAdasum);
  if (usable) {
    slot->last_used = place_.agreed;
    if (slot->is_unnamed) ++place_.unnamed[static_cast<size_t>(slot->kind())];
    run_cached(operation_of(marks, *slot), slot, marks);
  } else {
    run_negotiated(marks);
  }
  order_.consume();
  return true;
}

// The own operation, or a stand-in when this rank has joined and contributes zeros.
Operation* Channel::operation_of(std::span<Mark> marks, const CachedOperation& slot) {
  const Mark& mine = marks[static_cast<size_t>(me())];
  if (mine.present) {
    return mine.local != nullptr ? static_cast<Operation*>(mine.local)
                                 : outbox_.operation(mine.index);
  }
  auto* op = new Operation();  // NOLINT: deleted in finish()
  op->is_shadow = true;
  op->kind = slot.kind();
  return op;
}

bool Channel::run_cached(Operation* op, const CachedPtr& slot_ptr, std::span<Mark> marks) {
  CachedOperation& slot = *slot_ptr;
  op->slot = slot_ptr;
  const std::byte* payloads[shm::kMaxRanks];
  bool deposited = slot.is_small(tuning_.small_limit());
  for (int rank = 0; rank < size(); ++rank) {
    const Mark& mark = marks[static_cast<size_t>(rank)];
    payloads[rank] = mark.payload;
    if (!mark.present) continue;
    if ((mark.flags & (control::kSharedBuffers | control::kNoPayload)) != 0) deposited = false;
    if (deposited && mark.payload_bytes != slot.deposit_of[static_cast<size_t>(rank)]) {
      works_.hold(*op);
      fail(corrupted(concat("record ", mark.index, " of member ", rank, " deposits ",
                            mark.payload_bytes, " bytes, expected ",
                            slot.deposit_of[static_cast<size_t>(rank)])));
      return false;
    }
  }
  if (deposited) {
    run_small(*op, slot, payloads);
  } else {
    run_large(*op, slot, marks);
  }
  return true;
}

// At least one rank sent a full request: validate, learn, run.
void Channel::run_negotiated(std::span<Mark> marks) {
  std::vector<const wire::Request*> requests(marks.size(), nullptr);
  const wire::Request* any = nullptr;
  for (size_t rank = 0; rank < marks.size(); ++rank) {
    if (!marks[rank].present) continue;
    requests[rank] = marks[rank].request.get();
    if (requests[rank] == nullptr) {
      requests[rank] = &marks[rank].slot_owner->request_of(static_cast<int>(rank));
    }
    any = requests[rank];
  }
  uint64_t& unnamed = place_.unnamed[static_cast<size_t>(any->kind)];
  const bool is_unnamed = any->tensors.empty() || any->tensors[0].name.empty();
  if (is_unnamed) ++unnamed;
  auto plan = negotiate::validate({requests, ranks(), unnamed});
  if (!plan) {
    const Mark& mine = marks[static_cast<size_t>(me())];
    if (mine.present) finish(*operation_of(marks, CachedOperation{}), plan.status());
    return;
  }
  const CachedPtr slot = adopt_plan(requests, std::move(*plan));
  Operation* op = operation_of(marks, *slot);
  if (op->is_traced) rows_.ready(*op);
  op->slot = slot;
  if (slot->kind() == wire::Kind::kProcessSetAdd || slot->kind() == wire::Kind::kProcessSetRemove) {
    const Status status = host_.begin_internal(*any, *op);
    if (!status.is_ok() || !op->work.leader_action) return finish(*op, status);
    start_work(*op);
  } else if (slot->kind() == wire::Kind::kBarrier) {
    finish(*op, Status::ok());
  } else if (size() == 1 && slot->requests[0].device < 0) {
    const std::byte* nothing[1] = {nullptr};
    run_small(*op, *slot, nothing);
  } else {
    run_large(*op, *slot, {});
  }
}

// All ranks make the same slot out of the same requests, at the same place in the agreed order.
CachedPtr Channel::adopt_plan(const std::vector<const wire::Request*>& requests,
                              negotiate::Plan plan) {
  auto slot = std::make_shared<CachedOperation>();
  const wire::Request& any =
      **std::find_if(requests.begin(), requests.end(), [](const auto* r) { return r != nullptr; });
  const bool all_here = std::find(requests.begin(), requests.end(), nullptr) == requests.end();
  const bool same = all_here && std::all_of(requests.begin(), requests.end(),
                                            [&](const auto* r) { return *r == any; });
  if (same || !all_here) {
    slot->requests.push_back(any);
  } else {
    for (const wire::Request* request : requests) slot->requests.push_back(*request);
  }
  slot->plan = std::move(plan);
  slot->is_unnamed = any.tensors.empty() || any.tensors[0].name.empty();
  slot->key = slot->is_unnamed ? signature_hash(slot->request_of(me())) : control::key_of(any, 0);
  derive(*slot, set_, tuning_.default_small_limit());
  slot->may_share = slot->may_share && works_.plane().can_run(collective::WorkKind::kReduceShared);
  const bool internal =
      any.kind == wire::Kind::kProcessSetAdd || any.kind == wire::Kind::kProcessSetRemove;
  if (all_here && !internal && slots_.capacity() > 0) remember(slot);
  return slot;
}

void Channel::remember(const CachedPtr& slot) {
  const uint64_t evictions_before = slots_.evictions();
  {
    SubmitGuard guard(host_.submit_lock());
    admission_.learn(slot, slots_.insert(slot, place_.agreed));
  }
  if (slots_.evictions() != evictions_before && evictions_before == 0) {
    HVD_LOG(kWarning, "response cache of process set ", id(),
            " is full (HOROVOD_CACHE_CAPACITY=", slots_.capacity(),
            "): entries are evicted from now on, which makes operations slower");
  }
}

void Channel::run_small(Operation& op, CachedOperation& slot, const std::byte* const* payloads) {
  if (HVD_UNLIKELY(op.is_traced)) rows_.started(op, "SHM");
  run_small_operation(op, slot, set_, payloads);
  statistics_.small_operations.add();
  finish(op, op.status);
}

bool Channel::all_share(const CachedOperation& slot, std::span<const Mark> marks) const {
  if (!slot.may_share || marks.empty()) return false;
  return std::all_of(marks.begin(), marks.end(), [](const Mark& mark) {
    return mark.present && (mark.flags & control::kSharedBuffers) != 0;
  });
}

void Channel::run_large(Operation& op, CachedOperation& slot, std::span<const Mark> marks) {
  flight_.set_state(op.flight, FlightState::kRunning);
  build_work(op, slot, set_);
  if (HVD_UNLIKELY(op.is_traced)) {
    rows_.started(op, works_.plane().activity(op.work));
    op.work.on_activity = [this, &op](std::string_view activity)
                              HVD_REQUIRES(engine_role) { rows_.went_on(op, activity); };
  }
  if (all_share(slot, marks)) {
    if (!map_shared(op, slot, marks)) {
      works_.hold(op);
      return;
    }
    statistics_.shared_operations.add();
  } else {
    statistics_.streamed_operations.add();
  }
  start_work(op);
}

void Channel::start_work(Operation& op) {
  // Part of the work, not of the channel: it may begin when the channel is tuned otherwise again.
  op.work.cut = ChannelTuning::cut_of(tuning_.now());
  if (const Status status = works_.add(op); HVD_UNLIKELY(!status.is_ok())) finish(op, status);
}

// False: no member can have written this.
bool Channel::switch_tuning(uint32_t bits) {
  const auto tuning = tune::decode(bits >> control::kTuningShift);
  if (!tuning) {
    fail(corrupted(concat("a record of rank ", rank_of(0), ": ", tuning.status().message())));
    return false;
  }
  {
    SubmitGuard guard(host_.submit_lock());
    tuning_.switch_to(*tuning, bits);
  }
  host_.tuned(*this, tuning_.now());
  return true;
}

// Turns the offsets that all ranks sent into addresses here.
bool Channel::map_shared(Operation& op, const CachedOperation& slot, std::span<const Mark> marks) {
  const auto& tensors = slot.requests[0].tensors;
  op.work.kind = collective::WorkKind::kReduceShared;
  for (size_t r = 0; r < op.work.run_count; ++r) {
    for (size_t t = 0; t < tensors.size(); ++t) {
      if (tensors[t].dtype != op.work.runs[r].numeric.dtype) continue;
      for (int rank = 0; rank < size(); ++rank) {
        const Mark& mark = marks[static_cast<size_t>(rank)];
        uint64_t offset = 0;
        std::byte* address = nullptr;
        if (mark.payload != nullptr && mark.payload_bytes == tensors.size() * sizeof offset) {
          std::memcpy(&offset, mark.payload + t * sizeof offset, sizeof offset);
          address = job_.arena_address(rank_of(rank), offset, tensors[t].bytes());
        }
        if (address == nullptr) {
          fail(corrupted(concat("allreduce '", tensors[t].name, "': the shared buffer of rank ",
                                rank_of(rank), " lies outside its memory")));
          return false;
        }
        op.work.shared.push_back(address);
      }
    }
  }
  return true;
}

void Channel::finish_join() {
  Operation* op = nullptr;
  {
    SubmitGuard guard(host_.submit_lock());
    op = admission_.end_join(place_.unnamed);
  }
  if (op == nullptr)
    return fail(corrupted("all ranks are said to have joined, but this one did not"));
  op->number = rank_of(order_.last_joined());
  finish(*op, Status::ok());
}

// Nothing but the name and the counters has to be put back.
void Channel::finish_plain(Operation& op) {
  statistics_.operations.add();
  statistics_.bytes.add(op.bytes);
  flight_.set_state(op.flight, FlightState::kDone);
  free_names(op);
  ++place_.finished;
  host_.completed(op);
}

void Channel::free_names(const Operation& op) {
  if (HVD_LIKELY(op.name != nullptr)) op.name->in_flight.store(false, std::memory_order_relaxed);
  for (NameState* state : op.names) state->in_flight.store(false, std::memory_order_relaxed);
}

void Channel::finish(Operation& op, const Status& status) {
  if (op.is_shadow) {
    delete &op;  // NOLINT: made in operation_of()
    return;
  }
  op.status = status;
  statistics_.operations.add();
  statistics_.bytes.add(op.bytes);
  if (HVD_UNLIKELY(!status.is_ok())) {
    statistics_.failed_operations.add();
    op.is_used_up = true;
  }
  flight_.end(op.flight, status.is_ok() ? FlightState::kDone : FlightState::kFailed);
  if (HVD_UNLIKELY(op.is_traced)) rows_.ended(op);
  free_names(op);
  if (HVD_UNLIKELY(op.request != nullptr && !op.is_unnamed)) {
    SubmitGuard guard(host_.submit_lock());
    admission_.forget_names(op);
  }
  if (op.kind == wire::Kind::kProcessSetAdd || op.kind == wire::Kind::kProcessSetRemove)
    host_.end_internal(op);
  ++place_.finished;
  host_.completed(op);
}

void Channel::fail_pending(const Status& status) {
  std::vector<Operation*> all;
  const auto collect = [&](Operation* op) {
    if (op != nullptr && !op->is_done() && std::find(all.begin(), all.end(), op) == all.end())
      all.push_back(op);
  };
  for (Operation* op : works_.abandon()) collect(op);
  for (control::LocalOperation* op : order_.pending_locals()) collect(static_cast<Operation*>(op));
  {
    SubmitGuard guard(host_.submit_lock());
    const uint32_t tail = outbox_.tail();
    for (uint32_t index = order_.next_own(); index != tail; ++index)
      collect(outbox_.operation(index));
    for (Operation* op : outbox_.take_queue()) collect(op);
    admission_.forget_join();
    order_.abandon(tail);
  }
  if (!all.empty()) host_.telling_failure(status);
  for (Operation* op : all) finish(*op, status);
}

}  // namespace hvd::engine
