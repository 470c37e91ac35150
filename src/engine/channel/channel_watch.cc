// What a channel says about itself: for what and for whom it waits, who leaves, whether the shared
// words are right, and what stalls. Needs the engine role.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "engine/channel/channel.h"

namespace hvd::engine {

using negotiate::Slot;

shm::Want Channel::want() const {
  if (plane_.is_idle()) return order_.want(options_.id);
  // Records of ours that are not agreed yet may be completed by anybody.
  return order_.next_own() == tail_.load(std::memory_order_relaxed) ? plane_.current().want()
                                                                    : shm::Want{};
}

uint64_t Channel::ring_late_peers() {
  if (plane_.is_idle()) return 0;
  uint64_t woken = 0;
  for (const int member : plane_.current().awaited_elsewhere()) {
    host_.mirror()->wake(rank_of(member));
    ++woken;
  }
  const int peer = link_.local_rank(plane_.current().awaited_here());
  if (peer == job_.rank() || job_.is_driven(peer)) return woken;
  return job_.wake_background(peer) ? woken + 1 : woken;
}

bool Channel::waits_for_driven_peers() const {
  if (plane_.is_idle()) {
    const int member = order_.missing_rank();
    return member < 0 || job_.is_driven(rank_of(member));
  }
  const collective::Backend& backend = plane_.current();
  return backend.spans_hosts() || job_.is_driven(link_.local_rank(backend.awaited_here()));
}

bool Channel::waits_for_closed_member() const {
  // What a member of another host has sent before it left still comes, or its stream breaks. A
  // member of this host that has left meanwhile is not what the task waits for then.
  if (!plane_.status().is_ok()) return true;
  if (plane_.is_idle()) return false;
  if (!plane_.current().awaited_elsewhere().empty()) return false;
  const auto place = static_cast<size_t>(plane_.current().awaited_here());
  const auto state = job_.block(ranks_here_[place]).state.load(std::memory_order_seq_cst);
  return is_closed_member(members_here_[place]) ||
         state == static_cast<uint32_t>(shm::RankState::kLeft);
}

void Channel::add_wanted_descriptors(std::vector<pollfd>& out) { plane_.add_descriptors(out); }

Status Channel::broken_stream(TimePoint now) {
  constexpr auto kGrace = std::chrono::milliseconds(500);
  if (plane_.status().is_ok() || is_closed()) return Status::ok();
  if (stream_broke_ == TimePoint{}) stream_broke_ = now;
  return now - stream_broke_ < kGrace ? Status::ok() : plane_.status();
}

void Channel::detach() {
  if (mirrored_ != nullptr) host_.mirror()->close(*mirrored_);
}

bool Channel::is_leaving(int member) const {
  const auto state = job_.block(rank_of(member)).state.load(std::memory_order_seq_cst);
  return state == static_cast<uint32_t>(shm::RankState::kLeaving) ||
         state == static_cast<uint32_t>(shm::RankState::kLeft) || is_closed_member(member);
}

bool Channel::has_leaving_member() const {
  for (int member = 0; member < size(); ++member) {
    if (is_leaving(member)) return true;
  }
  return false;
}

bool Channel::lags_behind_leavers() const {
  if (mirrored_ == nullptr) return false;
  for (int member = 0; member < size(); ++member) {
    if (member == me() || !is_leaving(member)) continue;
    for (int stream = 0; stream < size(); ++stream) {
      const uint32_t theirs = board_.low(member, stream).load(std::memory_order_acquire);
      const uint32_t mine = board_.low(me(), stream).load(std::memory_order_relaxed);
      if (!shm::reached(mine, theirs)) return true;
    }
  }
  return false;
}

size_t Channel::first_closed_member() const {
  for (int member = 0; member < size(); ++member) {
    if (is_closed_member(member)) return static_cast<size_t>(member);
  }
  return 0;
}

void Channel::close(const Status& status) {
  {
    SubmitGuard guard(host_.submit_lock());
    if (!is_closed()) closed_status_ = status;
    is_closed_.store(true, std::memory_order_relaxed);
  }
  link_.bell().post(board_.closed(me()), 1);
  flush_mirror();
  fail_pending(status);
}

Status Channel::check_shared_words() {
  if (is_closed()) return Status::ok();
  HVD_TRY(order_.check());
  HVD_TRY(check_own_records());
  if (!link_.own_words_are_right()) {
    return corrupted(concat("a counter of rank ", my_rank(),
                            " in the shared segment of process set ", options_.id,
                            " is not what it wrote"));
  }
  if (!plane_.is_idle() && link_.want_is_nonsense()) {
    return corrupted(concat("a counter of rank ",
                            ranks_here_[static_cast<size_t>(link_.want_member())],
                            " in the shared segment is corrupted"));
  }
  return Status::ok();
}

// Records that some rank may still have to read.
Status Channel::check_own_records() {
  // Only tried: the lock's own word may be what is wrong.
  if (!host_.submit_lock().try_lock()) return Status::ok();
  Status status;
  const uint32_t tail = tail_.load(std::memory_order_relaxed);
  const uint32_t count = std::min(tail - watermark(), control::kRecords - 1);
  for (uint32_t index = tail - count; index != tail && status.is_ok(); ++index) {
    if (board_.has(me(), index)) continue;
    status = corrupted(concat("record ", index, " of rank ", my_rank(), " has the sequence number ",
                              board_.record(me(), index).seq.load(), ", it wrote ", index + 1));
  }
  host_.submit_lock().unlock();
  return status;
}

std::vector<Waiting> Channel::waiting() const {
  struct Seen {
    std::string name;
    uint64_t ticket;
    std::set<int> ranks;
  };
  std::vector<Seen> seen;
  const auto note = [&](const std::string& name, int rank, uint32_t index) {
    for (Seen& known : seen) {
      if (known.name == name) return void(known.ranks.insert(rank));
    }
    seen.push_back({name, static_cast<uint64_t>(rank) << 32 | index, {rank}});
  };
  for (int rank = 0; rank < size(); ++rank) {
    auto unnamed = unnamed_agreed_;  // counted on over what is not agreed, in the rank's own order
    order_.for_unagreed(rank, [&](const control::Mark& mark) {
      const wire::Request* request = request_of(rank, mark);
      if (request == nullptr) {
        // Not read yet: a join, or a slot that this rank may not know.
        const Slot* found = slots_.find(mark.slot);
        if (found == nullptr) return;
        request = &found->requests[0];
      }
      const bool has_no_name = request->tensors.empty() || request->tensors[0].name.empty();
      uint64_t& number = unnamed[static_cast<size_t>(request->kind)];
      if (has_no_name) ++number;
      note(concat(wire::kind_lower_name(request->kind), " ", wire::display_name(*request, number)),
           rank, mark.index);
    });
  }
  std::vector<Waiting> result;
  for (auto& [name, ticket, ranks] : seen) {
    Waiting waiting{name, ticket, {}};
    for (int rank = 0; rank < size(); ++rank) {
      if (ranks.count(rank) == 0 && !order_.has_joined(rank)) waiting.missing.push_back(rank);
    }
    if (!waiting.missing.empty()) result.push_back(std::move(waiting));
  }
  return result;
}

}  // namespace hvd::engine
