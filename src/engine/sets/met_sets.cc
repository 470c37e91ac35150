#include "engine/sets/met_sets.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/hash.h"
#include "base/text.h"

namespace hvd::engine {
namespace {

uint64_t met_region_bytes(size_t ranks) {
  return align_up(Channel::region_bytes(static_cast<int>(ranks)), 4096) + 4096;
}

}  // namespace

Result<std::shared_ptr<SetChange>> MetSets::come(std::string_view key, std::vector<int32_t> ranks) {
  const auto change = std::make_shared<SetChange>();
  HVD_TRY_ASSIGN(change->place,
                 meetings_.come(key, ranks_on_this_host(ranks), met_region_bytes(ranks.size())));
  change->key = key;
  change->ranks = std::move(ranks);
  changes_.add(change);
  return change;
}

std::shared_ptr<SetChange> MetSets::ask_to_leave(int32_t id, Deadline deadline) {
  const auto change = std::make_shared<SetChange>();
  change->kind = SetChange::Kind::kLeave;
  change->id = id;
  change->deadline = deadline;
  changes_.add(change);
  return change;
}

Status MetSets::withdraw(const shm::MeetingPlace& place) {
  HVD_TRY_ASSIGN(const bool withdrawn, meetings_.withdraw(place));
  return withdrawn ? Status::ok() : meetings_.leave(place);
}

std::vector<int32_t> MetSets::ranks_on_this_host(const std::vector<int32_t>& ranks) const {
  std::vector<int32_t> here;
  std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(here),
               [&](int32_t rank) { return surroundings_.job->is_here(rank); });
  return here;
}

bool MetSets::settle() {
  bool any = false;
  for (const auto& change : changes_.all()) {
    if (!change->is_waiting()) continue;
    const bool settled =
        change->kind == SetChange::Kind::kMeet ? settle_meeting(*change) : settle_leaving(*change);
    if (!settled) continue;
    changes_.remove(change);
    any = true;
  }
  return any;
}

bool MetSets::settle_meeting(SetChange& change) {
  if (meetings_.state(change.place) == shm::MeetingState::kOpen) {
    if (!change.take()) return false;
    change.settle(open(change));
    return true;
  }
  Status status = why_never(change);
  if (status.is_ok() || !change.take()) return false;
  change.settle(std::move(status));
  return true;
}

// OK: the meeting may still be complete one day.
Status MetSets::why_never(const SetChange& change) const {
  if (meetings_.state(change.place) == shm::MeetingState::kRefused)
    return meetings_.refusal(change.place);
  const shm::Job& job = *surroundings_.job;
  if (job.header().leaving.load(std::memory_order_acquire) == 0) return Status::ok();
  // Whoever leaves a job that failed has said before why: that is the reason, not its leaving.
  if (job.has_failed()) return Status::ok();
  Status status;
  for (const int rank : meetings_.missing(change.place)) {
    const shm::RankBlock& peer = job.block(rank);
    if (peer.state.load() == static_cast<uint32_t>(shm::RankState::kRunning)) continue;
    status =
        Status(StatusCode::kShutDown,
               concat("meet '", change.key, "': rank ", peer.global_rank, " (host ",
                      std::string_view(peer.hostname, strnlen(peer.hostname, sizeof peer.hostname)),
                      ") has shut down and will not come"));
  }
  return status;
}

// Members of all hosts find the same without asking each other: the key, the ranks, and how often
// they have met before.
uint32_t MetSets::wire_id(const SetChange& change) {
  uint64_t hash = hash_bytes(change.key);
  for (const int32_t rank : change.ranks) hash = mix(hash, static_cast<uint32_t>(rank) + 1ull);
  const uint32_t count = met_counts_[hash]++;
  return static_cast<uint32_t>(mix(hash, count)) | kMetWireId;
}

Status MetSets::open(const SetChange& change) {
  const int32_t id = SetRegistry::met_id(change.place);
  try {
    sets_.registry().open_met(
        change.place,
        std::make_unique<Channel>(host_, sets_.channel_options(id, wire_id(change), change.ranks),
                                  surroundings_.job->base() + change.place.offset));
    sets_.registry().channel(id)->propose(sets_.global().tuning());
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::kOutOfMemory, concat("meet '", change.key, "': no memory"));
  }
  return Status::ok();
}

// What is agreed is finished first, because the others may need this rank for it.
bool MetSets::settle_leaving(SetChange& change) {
  Channel* const channel = sets_.registry().channel(change.id);
  if (channel != nullptr) {
    while (channel->step(Channel::Effort::kEverything) == StepResult::kAdvanced) {
    }
    if (channel->is_busy() && !channel->waits_for_closed_member() && !change.deadline.passed())
      return false;
    const bool are_late = channel->streams_are_late(std::chrono::steady_clock::now());
    if (are_late && !change.deadline.passed()) return false;
  }
  if (!change.take()) return false;
  const auto place = sets_.registry().close_met(change.id);
  if (!place) {
    change.settle(invalid_argument(concat("leave: process set ", change.id, " was left already")));
    return true;
  }
  change.place = *place;
  channel->detach();  // the region may become another set's
  channel->close(Status(StatusCode::kAborted, concat("rank ", surroundings_.rank(),
                                                     " has left process set ", change.id)));
  change.settle(Status::ok());
  return true;
}

std::vector<MetSets::Awaited> MetSets::awaited() {
  std::vector<Awaited> found;
  for (const auto& change : changes_.all()) {
    if (change->kind != SetChange::Kind::kMeet || !change->is_waiting()) continue;
    std::vector<int> missing;
    for (const int rank : meetings_.missing(change->place)) {
      const auto at = std::find(change->ranks.begin(), change->ranks.end(), rank);
      missing.push_back(static_cast<int>(at - change->ranks.begin()));
    }
    if (missing.empty()) continue;
    const bool is_first = meetings_.first_come(change->place) == surroundings_.job->rank();
    found.push_back({change, std::move(missing), is_first});
  }
  return found;
}

}  // namespace hvd::engine
