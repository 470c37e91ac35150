// Ranks that group the same names differently. A name is in flight once per rank, so if one rank
// has it in a group and another alone (or in another group), neither can ever submit what the other
// waits for. Found from the records that were read; the decision log ends them one by one, so that
// all ranks forget the same records at the same place.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/hash.h"
#include "base/text.h"
#include "engine/channel/channel.h"

namespace hvd::engine {
namespace {

struct Item {
  int rank;
  uint32_t index;
  uint64_t key;  // equal for records that are partners
  const wire::Request* request;
};

bool share_a_name(const wire::Request& a, const wire::Request& b) {
  return std::any_of(a.tensors.begin(), a.tensors.end(), [&](const wire::TensorSpec& tensor) {
    return std::any_of(b.tensors.begin(), b.tensors.end(), [&](const wire::TensorSpec& other) {
      return !tensor.name.empty() && tensor.name == other.name;
    });
  });
}

// All items that hang together by names, from the first name on that two ranks have in records
// which are no partners. Empty: there is no such name.
std::vector<size_t> find_conflict(const std::vector<Item>& items) {
  std::unordered_map<std::string_view, std::vector<size_t>> by_name;
  for (size_t i = 0; i < items.size(); ++i) {
    for (const wire::TensorSpec& tensor : items[i].request->tensors)
      by_name[tensor.name].push_back(i);
  }
  std::vector<size_t> found;
  for (size_t i = 0; i < items.size() && found.empty(); ++i) {
    for (const wire::TensorSpec& tensor : items[i].request->tensors) {
      for (const size_t other : by_name[tensor.name]) {
        if (items[other].key != items[i].key && items[other].rank != items[i].rank) found = {i};
      }
    }
  }
  std::vector<bool> is_in(items.size(), false);
  for (const size_t i : found) is_in[i] = true;
  for (size_t at = 0; at < found.size(); ++at) {
    for (const wire::TensorSpec& tensor : items[found[at]].request->tensors) {
      for (const size_t other : by_name[tensor.name]) {
        if (is_in[other]) continue;
        is_in[other] = true;
        found.push_back(other);
      }
    }
  }
  return found;
}

std::string grouping_text(int32_t rank, const wire::Request& request) {
  return concat("rank ", rank, " sent ", wire::display_name(request, 0));
}

}  // namespace

const wire::Request* Channel::request_of(int rank, const control::Mark& mark) {
  if (mark.request != nullptr) return mark.request.get();
  return mark.slot_owner == nullptr ? nullptr : &mark.slot_owner->request_of(rank);
}

void Channel::refuse_other_groupings() {
  if (is_closed() || !order_.is_stuck()) return;
  std::vector<Item> items;
  order_.for_open([&](int rank, const control::Mark& mark, uint64_t key) {
    const wire::Request* request = request_of(rank, mark);
    if (request == nullptr || request->tensors.empty() || request->tensors[0].name.empty()) return;
    items.push_back({rank, mark.index, key, request});
  });
  const std::vector<size_t> conflict = find_conflict(items);
  std::set<int> ranks;
  std::vector<std::pair<int, uint32_t>> records;
  for (const size_t i : conflict) {
    ranks.insert(items[i].rank);
    records.emplace_back(items[i].rank, items[i].index);
  }
  // Not before everybody has come: then the error reaches all of them.
  for (int rank = 0; rank < size(); ++rank) {
    if (ranks.count(rank) == 0 && !order_.has_joined(rank)) return;
  }
  order_.refuse(std::move(records));
}

void Channel::finish_refused() {
  const int rank = order_.refused_rank();
  const control::Mark& mark = order_.marks()[static_cast<size_t>(rank)];
  const wire::Request* request = request_of(rank, mark);
  std::string other;
  order_.for_open([&](int r, const control::Mark& open, uint64_t) HVD_REQUIRES(engine_role) {
    const wire::Request* theirs = request_of(r, open);
    if (request == nullptr || theirs == nullptr || !share_a_name(*request, *theirs)) return;
    if (r != rank && other.empty()) other = grouping_text(rank_of(r), *theirs);
    if (r == me() && rank != me()) {
      other_groupings_.try_emplace(open.index, grouping_text(rank_of(rank), *request));
    }
  });
  if (rank == me()) {
    if (other.empty()) other = other_groupings_[mark.index];
    other_groupings_.erase(mark.index);
    auto* op = static_cast<Operation*>(mark.local);
    finish(*op, precondition_error(concat(
                    wire::kind_lower_name(request->kind), " ", wire::display_name(*request, 0),
                    ": Mismatched groups: ", grouping_text(my_rank(), *request), ", ", other,
                    "; a tensor is in a group on all ranks, in the same group, or on none")));
  }
  order_.consume();
}

}  // namespace hvd::engine
