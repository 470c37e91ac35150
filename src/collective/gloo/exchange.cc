#include "collective/gloo/exchange.h"

#include <numeric>

#include "shm/job_layout.h"

namespace hvd::collective::gloo {
namespace {

uint64_t sum(const std::vector<uint64_t>& values) {
  return std::accumulate(values.begin(), values.end(), uint64_t{0});
}

// Memory for what this member does not want, but Gloo needs a place for.
std::byte* place(std::byte* wanted, Scratch& scratch, uint64_t bytes) {
  return wanted != nullptr ? wanted : scratch.get(bytes + 1);
}

Status broadcast(Group& group, Scratch& scratch, const Exchange& x, int root) {
  const uint64_t bytes = x.receive_bytes[static_cast<size_t>(root)];
  std::byte* const out =
      place(x.out == nullptr ? nullptr : x.out + x.receive_offset[static_cast<size_t>(root)],
            scratch, bytes);
  return group.broadcast(x.in, out, bytes, root);
}

Status gather(Group& group, Scratch& scratch, const Exchange& x) {
  return group.allgather(x.in, place(x.out, scratch, sum(x.receive_bytes)), x.receive_bytes);
}

Status swap(Group& group, Scratch& scratch, const Exchange& x) {
  return group.alltoall(x.in, x.send_bytes, place(x.out, scratch, sum(x.receive_bytes)),
                        x.receive_bytes);
}

// Every member gets all blocks for its part and combines them at once, in the order of the ranks.
Status scatter(Group& group, Scratch& scratch, const Exchange& x) {
  const Numeric& n = x.numeric;
  const auto size = static_cast<size_t>(group.size());
  const auto me = static_cast<size_t>(group.me());
  const uint64_t all = sum(x.send_bytes) / n.element_bytes();
  const uint64_t mine = x.receive_bytes[me] / n.element_bytes();
  const bool is_copied = x.in == nullptr || !n.is_plain();
  const size_t received_bytes = mine * size * n.slot_bytes();
  std::byte* const received = scratch.get(received_bytes + all * n.slot_bytes() + 1);
  const std::byte* sent = x.in;
  if (is_copied) {
    put(n, received + received_bytes, x.in, all);
    sent = received + received_bytes;
  }
  std::vector<uint64_t> send_bytes;
  for (const uint64_t bytes : x.send_bytes)
    send_bytes.push_back(bytes / n.element_bytes() * n.slot_bytes());
  HVD_TRY(group.alltoall(sent, send_bytes, received,
                         std::vector<uint64_t>(size, mine * n.slot_bytes())));
  if (mine == 0) return Status::ok();
  std::vector<const std::byte*> slots;
  for (size_t r = 0; r < size; ++r) slots.push_back(received + r * mine * n.slot_bytes());
  const std::byte* const own = x.in == nullptr ? nullptr : x.in + x.send_offset[me];
  combine(n, {slots.data(), static_cast<unsigned>(size), static_cast<unsigned>(me), own, x.out,
              nullptr, mine});
  return Status::ok();
}

Status exchange_one(Group& group, Scratch& scratch, const Exchange& x) {
  if (x.largest_block_bytes == 0) return Status::ok();
  if (x.reduces) return scatter(group, scratch, x);
  if (!x.same_block_for_all) return swap(group, scratch, x);
  const auto root = only_sender(x);
  return root ? broadcast(group, scratch, x, *root) : gather(group, scratch, x);
}

}  // namespace

std::optional<int> only_sender(const Exchange& exchange) {
  std::optional<int> sender;
  for (size_t r = 0; r < exchange.receive_bytes.size(); ++r) {
    if (exchange.receive_bytes[r] == 0) continue;
    if (sender) return std::nullopt;
    sender = static_cast<int>(r);
  }
  return sender;
}

Status run_exchange(Group& group, Scratch& scratch, const Work& work) {
  for (const Exchange& exchange : work.exchanges) HVD_TRY(exchange_one(group, scratch, exchange));
  return Status::ok();
}

}  // namespace hvd::collective::gloo
