#include "engine/set_calls.h"

#include <algorithm>

#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "engine/drive/driver.inc.h"
#include "engine/operation/in_callback.h"

namespace hvd::engine {
namespace {

// As long as shutdown lets operations finish.
constexpr Nanoseconds kLeaveTime = std::chrono::seconds(10);

Status check_key(std::string_view key) {
  if (!key.empty() && key.size() <= shm::kLongestMeetingKey) return Status::ok();
  return invalid_argument(
      concat("meet: the key has ", key.size(), " bytes, expected 1 to ", shm::kLongestMeetingKey));
}

}  // namespace

Status SetCalls::barrier(int32_t set, Deadline deadline) {
  const int64_t empty = 0;
  TensorArg tensor;
  tensor.name = kBarrierName;
  tensor.dtype = DType::kUint8;
  tensor.shape = {&empty, 1};
  Submission s;
  s.kind = wire::Kind::kBarrier;
  s.tensors = {&tensor, 1};
  return submissions_.run(set, s, deadline);
}

Result<AddedSet> SetCalls::add(std::vector<int32_t> ranks) {
  HVD_TRY(check_set_ranks(ranks, surroundings_.topology.size));
  Submission s;
  s.kind = wire::Kind::kProcessSetAdd;
  s.ranks = ranks;
  HVD_TRY_ASSIGN(const uint64_t handle, submissions_.submit(0, s));
  const Status status = submissions_.wait(handle, Deadline::never());
  AddedSet added{-1, true};
  if (auto op = submissions_.completed_operation(handle)) {
    added.is_new = !(*op)->existing_set;
    added.id = (*op)->existing_set.value_or((*op)->number);
  }
  HVD_TRY(submissions_.release(handle));
  if (added.is_new) HVD_TRY(status);
  return added;
}

Result<bool> SetCalls::remove(int32_t id) {
  if (id <= 0) return false;
  Submission s;
  s.kind = wire::Kind::kProcessSetRemove;
  s.ranks = {&id, 1};
  HVD_TRY_ASSIGN(const uint64_t handle, submissions_.submit(0, s));
  const Status status = submissions_.wait(handle, Deadline::never());
  HVD_TRY(submissions_.release(handle));
  if (status.code() == StatusCode::kInvalidArgument)
    return false;  // the same everywhere: no such set
  HVD_TRY(status);
  return true;
}

Status SetCalls::check_meeting(std::string_view key, std::vector<int32_t>& ranks) const {
  HVD_TRY(InCallback::check("meet"));
  HVD_TRY(check_key(key));
  HVD_TRY(check_set_ranks(ranks, surroundings_.topology.size));
  const int32_t me = surroundings_.rank();
  if (std::find(ranks.begin(), ranks.end(), me) != ranks.end()) return Status::ok();
  return invalid_argument(concat("meet '", key, "': rank ", me, " is not a member of [",
                                 join_text(ranks, ", ", 16), "]"));
}

Result<int32_t> SetCalls::meet(std::string_view key, std::vector<int32_t> ranks,
                               Deadline deadline) {
  if (Status failure = failure_.health(); !failure.is_ok())
    return failure_.told(std::move(failure));
  HVD_TRY(check_meeting(key, ranks));
  HVD_TRY_ASSIGN(const auto change, met_sets_.come(key, std::move(ranks)));
  // The role holder may sleep for something else: it must know that there is more to look at.
  wake_role_holder();
  Status status = wait_for(change, deadline);
  if (status.is_ok()) return enter(*change, deadline);
  // A failure that is known already need not be reported twice.
  if (change->is_settled()) (void)met_sets_.withdraw(change->place).is_ok();
  return status;
}

Status SetCalls::wait_for(const std::shared_ptr<SetChange>& change, Deadline deadline) {
  const auto done = [&] {
    return change->is_settled() || failure_.is_broken() || failure_.is_closing();
  };
  // Whether it is settled says more than why the waiting ended.
  (void)driver_.wait_until(done, sets_.global(), deadline).is_ok();
  if (change->take()) return give_up(change);
  change->wait_until_settled();
  return change->status;
}

// The members of this host have met; those of the others are waited for in the set itself.
Result<int32_t> SetCalls::enter(const SetChange& change, Deadline deadline) {
  const int32_t id = SetRegistry::met_id(change.place);
  const shm::Job& job = *surroundings_.job;
  if (std::all_of(change.ranks.begin(), change.ranks.end(),
                  [&](int32_t rank) { return job.is_here(rank); }))
    return id;
  const Status status = barrier(id, deadline);
  if (status.is_ok()) return id;
  (void)leave(id).is_ok();
  return Status(status.code(), concat("meet '", change.key, "': ", status.message()));
}

// Nobody has settled it: the deadline has passed, or the engine ends. Owns the change.
Status SetCalls::give_up(const std::shared_ptr<SetChange>& change) {
  met_sets_.changes().remove(change);
  const std::vector<int> missing = met_sets_.meetings().missing(change->place);
  if (Status failure = failure_.health(); !failure.is_ok())
    return failure_.told(std::move(failure));
  HVD_TRY_ASSIGN(const bool withdrawn, met_sets_.meetings().withdraw(change->place));
  if (withdrawn) {
    return Status(
        StatusCode::kTimedOut,
        concat("meet '", change->key, "': timed out waiting for ranks [",
               join_text(missing, ", ", 16), "] of [", join_text(change->ranks, ", ", 16), "]"));
  }
  // The last member came in this moment. The rest is up to this process alone.
  change->put_back();
  met_sets_.changes().add(change);
  wake_role_holder();
  HVD_TRY(driver_.wait_until([&] { return change->is_settled() || !failure_.health().is_ok(); },
                             sets_.global(), Deadline::never()));
  if (!change->take()) {
    change->wait_until_settled();
    return change->status;
  }
  met_sets_.changes().remove(change);
  return failure_.told(failure_.health());
}

Status SetCalls::leave(int32_t id) {
  Channel* const channel = sets_.registry().channel(id);
  if (id < SetRegistry::kFirstMetId || channel == nullptr) {
    return invalid_argument(concat("leave: process set ", id,
                                   " was not opened by a meeting of this rank, or was left"));
  }
  HVD_TRY(InCallback::check("leave"));
  const auto change = met_sets_.ask_to_leave(id, Deadline::after(kLeaveTime));
  wake_role_holder();
  const auto done = [&] { return change->is_settled() || !failure_.health().is_ok(); };
  HVD_TRY(driver_.wait_until(done, *channel, Deadline::never()));
  if (change->take()) {  // the set ends with the job
    met_sets_.changes().remove(change);
    return Status::ok();
  }
  change->wait_until_settled();
  HVD_TRY(change->status);
  return met_sets_.meetings().leave(change->place);
}

Status SetCalls::add_static(const std::vector<std::vector<int32_t>>& sets) {
  HVD_TRY(agree_on_static(sets));
  for (const auto& set : sets) {
    if (Status status = add_static_set(set); !status)
      return Status(status.code(), concat("init: ", status.message()));
  }
  return Status::ok();
}

// One that exists already is left out, on all ranks alike: whoever gave it to init can tell that it
// got no id of its own.
Status SetCalls::add_static_set(std::vector<int32_t> ranks) {
  HVD_TRY(check_set_ranks(ranks, surroundings_.topology.size));
  if (const auto id = sets_.registry().find(ranks)) {
    HVD_LOG(kInfo, "init: process set [", join_text(ranks, ", ", 16),
            "] is not added again: it has the id ", *id);
    return Status::ok();
  }
  auto added = add(std::move(ranks));
  return added ? Status::ok() : added.status();
}

// All ranks must ask for the same sets; a rank that asks for more would wait for ever.
Status SetCalls::agree_on_static(const std::vector<std::vector<int32_t>>& sets) {
  if (surroundings_.topology.size == 1) return Status::ok();
  uint64_t hash = sets.size();
  for (std::vector<int32_t> set : sets) {
    std::sort(set.begin(), set.end());
    for (const int32_t rank : set) hash = mix(hash, static_cast<uint32_t>(rank) + 1ull);
    hash = mix(hash, set.size());
  }
  const int64_t mine[2] = {static_cast<int64_t>(hash >> 1), -static_cast<int64_t>(hash >> 1)};
  int64_t least[2] = {0, 0};
  const int64_t shape = 2;
  TensorArg tensor;
  tensor.name = "<static process sets>";
  tensor.dtype = DType::kInt64;
  tensor.shape = {&shape, 1};
  tensor.input = mine;
  tensor.output = least;
  Submission s;
  s.reduce_op = ReduceOp::kMin;
  s.tensors = {&tensor, 1};
  const Status status =
      submissions_.run(0, s, Deadline::after(surroundings_.settings.rendezvous_timeout));
  if (!status.is_ok())
    return Status(status.code(), concat("init: agreeing on process sets: ", status.message()));
  if (least[0] == -least[1]) return Status::ok();  // the smallest equals the largest
  return invalid_argument(
      concat("init: the ranks were given different process sets (this rank: ", sets.size(), ")"));
}

}  // namespace hvd::engine
