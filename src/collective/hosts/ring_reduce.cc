// Parts of a block travel around the hosts. Reducing: in step s every host sends part (me - s) to
// the next host and adds its own elements to the part that comes; after H - 1 steps it holds the
// result of part me + 1. Gathering: the results travel on, H - 1 steps more. Each part is summed in
// the order in which it travels, starting with the host of its number: the same bits everywhere.
// Blocks follow each other without overlap; with many hosts a block is large.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/bytes.h"
#include "collective/hosts/host_reduce.h"
#include "collective/shares.h"

namespace hvd::collective::hosts {
namespace {

// The average of a host's elements and the sum of those of all other hosts, in place of the
// elements. A sum does not tell what it was made of; but where it is the one that elements equal to
// this host's add up to, they are the average (mean_format.h says why the quotient may not be).
template <typename Float>
void average_in_place(std::byte* elements, const std::byte* sum, size_t count, const Scale& post) {
  constexpr size_t kBlock = 64;
  auto* own = reinterpret_cast<Float*>(elements);
  const auto* others = reinterpret_cast<const Float*>(sum);
  for (size_t at = 0; at < count; at += kBlock, own += kBlock, others += kBlock) {
    const size_t here = std::min(kBlock, count - at);
    Float of_equals[kBlock];
    std::copy_n(own, here, of_equals);
    for (int64_t added = 2; added < post.divisor; ++added) {
      for (size_t i = 0; i < here; ++i) of_equals[i] += own[i];
    }
    for (size_t i = 0; i < here; ++i) {
      const bool is_alike = others[i] == of_equals[i] && std::isfinite(others[i]);
      const Float mean = (others[i] + own[i]) / static_cast<Float>(post.divisor);
      own[i] = (is_alike ? own[i] : mean) * static_cast<Float>(post.factor);
    }
  }
}

class RingReduce final : public HostReduce {
 public:
  RingReduce(HostLink& hosts, const BlockSequence& sequence)
      : hosts_(hosts),
        sequence_(sequence),
        host_count_(hosts.layout().host_count()),
        me_(hosts.my_host()),
        area_bytes_(align_up(sequence.largest_bytes, kCacheLine)),
        next_(neighbour(1)),
        previous_(neighbour(host_count_ - 1)) {}

  bool can_start() const override {
    return started_ == finished_ && started_ < sequence_.block_count;
  }

  void start(const Block& block) HVD_REQUIRES(engine_role) override {
    block_ = block;
    elements_ = hosts_.scratch(2 * area_bytes_);
    received_ = elements_ + area_bytes_;
    const Numeric& n = numeric();
    block.run->for_range(block.first, block.count,
                         [&](const std::byte* in, std::byte*, uint64_t at, uint64_t count) {
                           put(n, elements_ + at * n.slot_bytes(), in, count);
                         });
    ++started_;
    step_ = 0;
    queue_step();
  }

  bool advance() HVD_REQUIRES(engine_role) override {
    bool moved = hosts_.pump();
    while (started_ > finished_ && hosts_.has_received(previous_, received_mark_)) {
      moved = true;
      if (step_ < host_count_ - 1) add_received();
      if (++step_ < 2 * (host_count_ - 1)) {
        queue_step();
        hosts_.pump();
        continue;
      }
      is_gathered_ = true;
      break;
    }
    // The elements are sent from scratch: they must have left before the next block comes.
    if (is_gathered_ && hosts_.has_sent(next_, sent_mark_)) {
      finish();
      moved = true;
    }
    return moved;
  }

  uint64_t finished() const override { return finished_; }

 private:
  int neighbour(int distance) const {
    const int host = (me_ + distance) % host_count_;
    return hosts_.layout().on_host(host)[static_cast<size_t>(hosts_.my_place())];
  }
  const Numeric& numeric() const { return block_.run->numeric; }
  uint64_t begin(int part) const {
    return share_begin(block_.count, numeric().slot_bytes(), host_count_, part);
  }
  uint64_t length(int part) const { return begin(part + 1) - begin(part); }
  // Part sent in a step; the one that comes is the one before it.
  int part_of(int step) const {
    const int turn = step < host_count_ - 1 ? -step : 1 - (step - (host_count_ - 1));
    return ((me_ + turn) % host_count_ + host_count_) % host_count_;
  }
  int part_received(int step) const { return (part_of(step) + host_count_ - 1) % host_count_; }

  void queue_step() {
    const size_t bytes = numeric().slot_bytes();
    const int leaving = part_of(step_), coming = part_received(step_);
    sent_mark_ =
        hosts_.queue_send(next_, elements_ + begin(leaving) * bytes, length(leaving) * bytes);
    // Sums in progress come beside the elements they will be added to, results into their place.
    // (The elements there left H - 1 steps ago, as sums of their part that came back since.)
    std::byte* to = step_ < host_count_ - 1 ? received_ : elements_;
    received_mark_ =
        hosts_.queue_receive(previous_, to + begin(coming) * bytes, length(coming) * bytes);
  }

  void add_received() {
    const Numeric& n = numeric();
    const int part = part_received(step_);
    if (length(part) == 0) return;
    const bool is_last = step_ == host_count_ - 2;
    std::byte* own = elements_ + begin(part) * n.slot_bytes();
    const std::byte* sum = received_ + begin(part) * n.slot_bytes();
    if (is_last && n.is_mean() && n.post.divisor == host_count_) {
      if (n.slot_dtype == DType::kFloat32)
        return average_in_place<float>(own, sum, length(part), n.post);
      return average_in_place<double>(own, sum, length(part), n.post);
    }
    const void* sources[2] = {sum, own};
    void* output = own;
    kernels().reduce(
        {n.slot_dtype, n.op, length(part), sources, 2, &output, 1, is_last ? n.post : Scale{}});
  }

  void finish() {
    const Numeric& n = numeric();
    block_.run->for_range(block_.first, block_.count,
                          [&](const std::byte*, std::byte* out, uint64_t at, uint64_t count) {
                            get(n, out, elements_ + at * n.slot_bytes(), count);
                          });
    is_gathered_ = false;
    ++finished_;
  }

  HostLink& hosts_;
  const BlockSequence sequence_;
  const int host_count_;
  const int me_;  // host
  const size_t area_bytes_;
  const int next_, previous_;  // members
  Block block_;
  std::byte* elements_ = nullptr;  // mine, then sums, then results
  std::byte* received_ = nullptr;
  int step_ = 0;
  uint64_t sent_mark_ = 0, received_mark_ = 0;
  bool is_gathered_ = false;
  uint64_t started_ = 0, finished_ = 0;
};

}  // namespace

std::unique_ptr<HostReduce> make_ring_reduce(HostLink& hosts, const BlockSequence& sequence) {
  return std::make_unique<RingReduce>(hosts, sequence);
}

}  // namespace hvd::collective::hosts
