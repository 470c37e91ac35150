// What a channel says about itself: for what and for whom it waits, who leaves, whether the shared
// words are right, and what stalls.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "engine/channel/channel.h"

namespace hvd::engine {

shm::Want Channel::want() const {
  if (works_.is_idle()) return order_.want(id());
  // Records of ours that are not agreed yet may be completed by anybody.
  return order_.next_own() == outbox_.tail() ? works_.current().want() : shm::Want{};
}

uint64_t Channel::ring_late_peers() {
  if (works_.is_idle()) return 0;
  uint64_t woken = 0;
  for (const int member : works_.current().awaited_elsewhere()) {
    host_.mirror()->wake(rank_of(member));
    ++woken;
  }
  const int peer = link_.local_rank(works_.current().awaited_here());
  if (peer == job_.rank() || job_.is_driven(peer)) return woken;
  return job_.wake_background(peer) ? woken + 1 : woken;
}

bool Channel::waits_for_driven_peers() const {
  if (works_.is_idle()) {
    const int member = order_.missing_rank();
    return member < 0 || job_.is_driven(rank_of(member));
  }
  const collective::Backend& backend = works_.current();
  return backend.spans_hosts() || job_.is_driven(link_.local_rank(backend.awaited_here()));
}

bool Channel::waits_for_closed_member() const {
  // What a member of another host has sent before it left still comes, or its stream breaks. A
  // member of this host that has left meanwhile is not what the task waits for then.
  if (!works_.plane().status().is_ok()) return true;
  if (works_.is_idle()) return false;
  if (!works_.current().awaited_elsewhere().empty()) return false;
  const auto place = static_cast<size_t>(works_.current().awaited_here());
  const auto state = job_.block(members_.ranks_here()[place]).state.load(std::memory_order_seq_cst);
  return is_closed_member(members_.members_here()[place]) ||
         state == static_cast<uint32_t>(shm::RankState::kLeft);
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
  if (!mirror_.is_open()) return false;
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
    admission_.close(status);
  }
  link_.bell().post(board_.closed(me()), 1);
  mirror_.flush();
  fail_pending(status);
}

Status Channel::check_shared_words() {
  if (is_closed()) return Status::ok();
  HVD_TRY(order_.check());
  HVD_TRY(outbox_.check(host_.submit_lock()));
  if (!link_.own_words_are_right()) {
    return corrupted(concat("a counter of rank ", my_rank(),
                            " in the shared segment of process set ", id(),
                            " is not what it wrote"));
  }
  if (!works_.is_idle() && link_.want_is_nonsense()) {
    return corrupted(concat("a counter of rank ",
                            members_.ranks_here()[static_cast<size_t>(link_.want_member())],
                            " in the shared segment is corrupted"));
  }
  return Status::ok();
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
    auto unnamed = place_.unnamed;  // counted on over what is not agreed, in the rank's own order
    order_.for_unagreed(rank, [&](const control::Mark& mark) {
      const wire::Request* request = request_of(rank, mark);
      if (request == nullptr) {
        // Not read yet: a join, or a slot that this rank may not know.
        const negotiate::Slot* found = slots_.find(mark.slot);
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
