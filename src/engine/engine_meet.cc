// Process sets that members open and close among themselves. Callers come to a meeting in the
// shared table and wait as for an operation, driving the engine; whoever holds the role opens the
// channel when all have come, because the list of channels belongs to the role.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/hash.h"
#include "base/text.h"
#include "engine/engine.h"
#include "engine/engine_wait.inc.h"

namespace hvd::engine {
namespace {

// As long as shutdown lets operations finish.
constexpr Nanoseconds kLeaveTime = std::chrono::seconds(10);

Status check_key(std::string_view key) {
  if (!key.empty() && key.size() <= shm::kLongestMeetingKey) return Status::ok();
  return invalid_argument(
      concat("meet: the key has ", key.size(), " bytes, expected 1 to ", shm::kLongestMeetingKey));
}

uint64_t met_region_bytes(size_t ranks) {
  return align_up(Channel::region_bytes(static_cast<int>(ranks)), 4096) + 4096;
}

}  // namespace

Result<int32_t> Engine::meet_process_set(std::string_view key, std::vector<int32_t> ranks,
                                         Deadline deadline) {
  if (Status failure = health(); !failure.is_ok()) return told(std::move(failure));
  HVD_TRY(InCallback::check("meet"));
  HVD_TRY(check_key(key));
  HVD_TRY(check_set_ranks(ranks, topology_.size));
  if (std::find(ranks.begin(), ranks.end(), topology_.rank) == ranks.end()) {
    return invalid_argument(concat("meet '", key, "': rank ", topology_.rank,
                                   " is not a member of [", join_text(ranks, ", ", 16), "]"));
  }
  const auto change = std::make_shared<SetChange>();
  const std::vector<int32_t> here = ranks_on_this_host(ranks);
  const bool spans_hosts = here.size() != ranks.size();
  HVD_TRY_ASSIGN(change->place, meetings_.come(key, here, met_region_bytes(ranks.size())));
  change->key = key;
  change->ranks = std::move(ranks);
  set_changes_.add(change);
  const auto done = [&] {
    return change->is_settled() || is_broken_.load(std::memory_order_relaxed) ||
           is_closing_.load(std::memory_order_relaxed);
  };
  // The role holder may sleep for something else: it must know that there is more to look at.
  job_->wake(job_->rank());
  Status waited = wait_until(done, *global_, deadline);
  if (change->take()) {
    waited = give_up_meeting(change);
  } else {
    change->wait_until_settled();
    waited = change->status;
  }
  if (waited.is_ok()) {
    const int32_t id = SetRegistry::met_id(change->place);
    if (!spans_hosts) return id;
    // The members of this host have met; those of the others are waited for in the set itself.
    waited = barrier(id, deadline);
    if (waited.is_ok()) return id;
    (void)leave_process_set(id).is_ok();
    return Status(waited.code(), concat("meet '", key, "': ", waited.message()));
  }
  // A failure that is known already need not be reported twice.
  if (change->is_settled()) (void)withdraw_from(change->place).is_ok();
  return waited;
}

// This rank waits no more. If the set has opened, it has left it.
Status Engine::withdraw_from(const shm::MeetingPlace& place) {
  HVD_TRY_ASSIGN(const bool withdrawn, meetings_.withdraw(place));
  return withdrawn ? Status::ok() : meetings_.leave(place);
}

// Nobody has settled it: the deadline has passed, or the engine ends. Owns the change.
Status Engine::give_up_meeting(const std::shared_ptr<SetChange>& change) {
  set_changes_.remove(change);
  const std::vector<int> missing = meetings_.missing(change->place);
  if (Status failure = health(); !failure.is_ok()) return told(std::move(failure));
  HVD_TRY_ASSIGN(const bool withdrawn, meetings_.withdraw(change->place));
  if (withdrawn) {
    return Status(StatusCode::kTimedOut,
                  concat("meet '", change->key, "': ranks [", join_text(missing, ", ", 16),
                         "] of [", join_text(change->ranks, ", ", 16), "] did not come in time"));
  }
  // The last member came in this moment. The rest is up to this process alone.
  change->put_back();
  set_changes_.add(change);
  job_->wake(job_->rank());
  HVD_TRY(wait_until([&] { return change->is_settled() || !health().is_ok(); }, *global_,
                     Deadline::never()));
  if (!change->take()) {
    change->wait_until_settled();
    return change->status;
  }
  set_changes_.remove(change);
  return told(health());
}

Status Engine::leave_process_set(int32_t id) {
  Channel* const channel = registry_.channel(id);
  if (id < SetRegistry::kFirstMetId || channel == nullptr) {
    return invalid_argument(concat("leave: process set ", id,
                                   " was not opened by a meeting of this rank, or was left"));
  }
  HVD_TRY(InCallback::check("leave"));
  const auto change = std::make_shared<SetChange>();
  change->kind = SetChange::Kind::kLeave;
  change->id = id;
  change->deadline = Deadline::after(kLeaveTime);
  set_changes_.add(change);
  job_->wake(job_->rank());
  const auto done = [&] { return change->is_settled() || !health().is_ok(); };
  HVD_TRY(wait_until(done, *channel, Deadline::never()));
  if (change->take()) {  // the set ends with the job
    set_changes_.remove(change);
    return Status::ok();
  }
  change->wait_until_settled();
  HVD_TRY(change->status);
  return meetings_.leave(change->place);
}

void Engine::settle_set_changes() {
  bool any = false;
  for (const auto& change : set_changes_.all()) {
    if (!change->is_waiting()) continue;
    const bool settled =
        change->kind == SetChange::Kind::kMeet ? settle_meeting(*change) : settle_leaving(*change);
    if (!settled) continue;
    set_changes_.remove(change);
    any = true;
  }
  if (any) notify_local_waiters();
}

bool Engine::settle_meeting(SetChange& change) {
  const shm::MeetingState state = meetings_.state(change.place);
  if (state == shm::MeetingState::kOpen) {
    if (!change.take()) return false;
    change.settle(open_met_set(change));
    return true;
  }
  Status status;
  if (state == shm::MeetingState::kRefused) {
    status = meetings_.refusal(change.place);
  } else if (job_->header().leaving.load(std::memory_order_acquire) != 0) {
    for (const int rank : meetings_.missing(change.place)) {
      const shm::RankBlock& peer = job_->block(rank);
      if (peer.state.load() == static_cast<uint32_t>(shm::RankState::kRunning)) continue;
      status = Status(
          StatusCode::kShutDown,
          concat("meet '", change.key, "': rank ", peer.global_rank, " (host ",
                 std::string_view(peer.hostname, strnlen(peer.hostname, sizeof peer.hostname)),
                 ") has shut down and will not come"));
    }
  }
  if (status.is_ok() || !change.take()) return false;
  change.settle(std::move(status));
  return true;
}

std::vector<int32_t> Engine::ranks_on_this_host(const std::vector<int32_t>& ranks) const {
  std::vector<int32_t> here;
  std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(here),
               [&](int32_t rank) { return job_->is_here(rank); });
  return here;
}

// Members of all hosts find the same without asking each other: the key, the ranks, and how often
// they have met before.
uint32_t Engine::met_wire_id(const SetChange& change) {
  uint64_t hash = hash_bytes(change.key);
  for (const int32_t rank : change.ranks) hash = mix(hash, static_cast<uint32_t>(rank) + 1ull);
  const uint32_t count = met_counts_[hash]++;
  return static_cast<uint32_t>(mix(hash, count)) | kMetWireId;
}

Status Engine::open_met_set(const SetChange& change) {
  const std::vector<int32_t>& ranks = change.ranks;
  ChannelOptions options = channel_options(SetRegistry::met_id(change.place), ranks);
  options.wire_id = met_wire_id(change);
  try {
    registry_.open_met(change.place, std::make_unique<Channel>(*this, std::move(options),
                                                               job_->base() + change.place.offset));
    registry_.channel(SetRegistry::met_id(change.place))->propose(global_->tuning());
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::kOutOfMemory, concat("meet '", change.key, "': no memory"));
  }
  return Status::ok();
}

// What is agreed is finished first, because the others may need this rank for it.
bool Engine::settle_leaving(SetChange& change) {
  Channel* const channel = registry_.channel(change.id);
  if (channel != nullptr) {
    while (channel->step(Channel::Effort::kEverything) == StepResult::kAdvanced) {
    }
    if (channel->is_busy() && !channel->waits_for_closed_member() && !change.deadline.passed())
      return false;
  }
  if (!change.take()) return false;
  const auto place = registry_.close_met(change.id);
  if (!place) {
    change.settle(invalid_argument(concat("leave: process set ", change.id, " was left already")));
    return true;
  }
  change.place = *place;
  channel->detach();  // the region may become another set's
  channel->close(Status(StatusCode::kAborted,
                        concat("rank ", topology_.rank, " has left process set ", change.id)));
  change.settle(Status::ok());
  return true;
}

void Engine::check_stalled_meetings(TimePoint now) {
  for (const auto& change : set_changes_.all()) {
    if (change->kind != SetChange::Kind::kMeet || !change->is_waiting()) continue;
    std::vector<int> missing;  // as places in the list of members
    for (const int rank : meetings_.missing(change->place)) {
      const auto at = std::find(change->ranks.begin(), change->ranks.end(), rank);
      missing.push_back(static_cast<int>(at - change->ranks.begin()));
    }
    if (missing.empty()) continue;
    const auto last_done = [&](int member) {
      return flight_.describe(change->ranks[static_cast<size_t>(member)], 1);
    };
    const auto set = static_cast<uint32_t>(SetRegistry::met_id(change->place));
    const StallReport report = stall_.look(
        now, set, change->ranks,
        {{concat("meet '", change->key, "'"), change->place.generation, missing}}, last_done);
    const bool reports = meetings_.first_come(change->place) == job_->rank();
    if (act_on_stall(report, {change->ranks.begin(), change->ranks.end()}, reports)) return;
  }
}

}  // namespace hvd::engine
