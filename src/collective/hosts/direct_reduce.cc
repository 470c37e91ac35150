// Every host owns a part of each block. Scatter: each host sends the others their parts; the owner
// combines what came with its own. Gather: it sends the result to all. In lockstep block follows
// block, and in each all sends come before the receives: bytes move in bulk, and what came is
// combined while it lies in the cache. Otherwise the gather of a block follows `lag` scatters
// later, with `in_flight` blocks under way (see pace.h).
//
// Buffers may be the user's own, with input equal to output: the result of a part overwrites it
// only after its owner has received it, which means that it has left.
#include <algorithm>
#include <vector>

#include "base/bytes.h"
#include "collective/hosts/host_reduce.h"
#include "collective/hosts/two_level.h"
#include "collective/shares.h"
#include "shm/job_layout.h"

namespace hvd::collective::hosts {
namespace {

class DirectReduce final : public HostReduce {
 public:
  DirectReduce(HostLink& hosts, const BlockSequence& sequence)
      : hosts_(hosts),
        sequence_(sequence),
        host_count_(hosts.layout().host_count()),
        me_(hosts.my_host()),
        area_bytes_(align_up(sequence.largest_bytes, kCacheLine) +
                    static_cast<size_t>(host_count_) * kCacheLine) {
    flights_.resize(in_flight());
    for (int host = 0; host < host_count_; ++host)
      peers_.push_back(hosts.layout().on_host(host)[static_cast<size_t>(hosts.my_place())]);
    for (Flight& flight : flights_) flight.marks.resize(peers_.size());
  }

  bool can_start() const override {
    // The gather of the block before the last goes out before the next scatter.
    return started_ < sequence_.block_count && started_ - finished_ < in_flight() &&
           gathered_ + lag() >= started_;
  }

  void start(const Block& block) HVD_REQUIRES(engine_role) override {
    Flight& flight = flights_[started_ % in_flight()];
    flight.block = block;
    const Numeric& n = block.run->numeric;
    flight.one_shot = choose_algorithm(block.count * n.slot_bytes(), host_count_,
                                       sequence_.one_shot_bytes) == Algorithm::kOneShot;
    flight.is_staged = !n.is_plain();
    block.run->for_range(block.first, block.count,
                         [&](const std::byte* in, std::byte* out, uint64_t, uint64_t) {
                           flight.is_staged |= in == nullptr || out == nullptr;
                         });
    ++started_;
    reserve(flight);
    scatter(flight);
    while (expected_ < started_ && may_gather(expected_))
      expect_gather(flights_[expected_++ % in_flight()]);
  }

  bool advance() HVD_REQUIRES(engine_role) override {
    bool moved = hosts_.pump();
    while (combined_ < started_ && has_come(flights_[combined_ % in_flight()])) {
      combine(flights_[combined_++ % in_flight()]);
      moved = true;
    }
    bool queued = false;
    while (gathered_ < combined_ && may_gather(gathered_)) {
      gather(flights_[gathered_++ % in_flight()]);
      queued = true;
    }
    if (queued) hosts_.pump();
    while (finished_ < gathered_ && is_complete(flights_[finished_ % in_flight()])) {
      finish(flights_[finished_++ % in_flight()]);
      moved = true;
    }
    return moved || queued;
  }

  uint64_t finished() const override { return finished_; }

 private:
  struct Marks {
    uint64_t scatter_sent = 0, scatter_received = 0, gather_sent = 0, gather_received = 0;
  };
  struct Flight {
    Block block;
    bool one_shot = false;          // every host combines the whole block
    bool is_staged = false;         // through scratch instead of the user's memory
    std::byte* received = nullptr;  // contributions of the other hosts
    std::byte* outgoing = nullptr;  // staged: own elements; then the result of my part
    std::byte* results = nullptr;   // staged: results from the other hosts
    std::vector<Marks> marks;       // per host
  };
  struct Range {
    uint64_t low, count;  // elements of the block
  };

  uint64_t in_flight() const { return sequence_.pace.in_flight; }
  uint64_t lag() const { return sequence_.pace.lag; }

  // Its place in the order of the streams has come.
  bool may_gather(uint64_t block) const {
    return started_ > block + lag() || started_ == sequence_.block_count;
  }

  Range part(const Flight& flight, int host) const {
    if (flight.one_shot) return {0, flight.block.count};
    const size_t bytes = flight.block.run->numeric.slot_bytes();
    const uint64_t low = share_begin(flight.block.count, bytes, host_count_, host);
    return {low, share_begin(flight.block.count, bytes, host_count_, host + 1) - low};
  }

  // What others sent of my part; in a one-shot block a part is the block.
  std::byte* received_from(const Flight& flight, int host) const {
    const uint64_t bytes = part(flight, me_).count * flight.block.run->numeric.slot_bytes();
    const int place = host < me_ ? host : host - 1;
    return flight.received + static_cast<uint64_t>(place) * align_up(bytes, kCacheLine);
  }

  void reserve(Flight& flight) {
    // The first area of a flight holds contributions: H - 1 parts, or in a one-shot block H - 1
    // small blocks.
    const size_t received_bytes = std::max(
        area_bytes_, static_cast<size_t>(host_count_) *
                         std::min<size_t>(area_bytes_, sequence_.one_shot_bytes + kCacheLine));
    const size_t each = received_bytes + 2 * area_bytes_;
    std::byte* memory = hosts_.scratch(in_flight() * each);
    flight.received = memory + static_cast<size_t>(&flight - flights_.data()) * received_bytes;
    std::byte* staged = memory + in_flight() * received_bytes +
                        static_cast<size_t>(&flight - flights_.data()) * 2 * area_bytes_;
    flight.outgoing = staged;
    flight.results = staged + area_bytes_;
  }

  template <typename Fn>
  void for_part(const Flight& flight, Range range, const Fn& fn) const {
    flight.block.run->for_range(flight.block.first + range.low, range.count, fn);
  }

  void scatter(Flight& flight) {
    const Numeric& n = flight.block.run->numeric;
    if (flight.is_staged) load(flight);
    for (int step = 1; step < host_count_; ++step) {
      // Hosts send in turned order, so that not all begin with the same receiver.
      const int host = (me_ + step) % host_count_;
      const int member = peers_[static_cast<size_t>(host)];
      const Range range = part(flight, host);
      Marks& marks = flight.marks[static_cast<size_t>(host)];
      if (flight.is_staged) {
        marks.scatter_sent = hosts_.queue_send(member, flight.outgoing + range.low * n.slot_bytes(),
                                               range.count * n.slot_bytes());
      } else {
        marks.scatter_sent = 0;
        for_part(flight, range, [&](const std::byte* in, std::byte*, uint64_t, uint64_t count) {
          marks.scatter_sent = hosts_.queue_send(member, in, count * n.slot_bytes());
        });
      }
      marks.scatter_received = hosts_.queue_receive(member, received_from(flight, host),
                                                    part(flight, me_).count * n.slot_bytes());
    }
  }

  void load(Flight& flight) {
    const Numeric& n = flight.block.run->numeric;
    for (int step = 1; step < host_count_; ++step) {
      const Range range = part(flight, (me_ + step) % host_count_);
      for_part(flight, range, [&](const std::byte* in, std::byte*, uint64_t at, uint64_t count) {
        put(n, flight.outgoing + (range.low + at) * n.slot_bytes(), in, count);
      });
      if (flight.one_shot) return;  // the same for all
    }
  }

  bool has_come(const Flight& flight) const {
    for (int host = 0; host < host_count_; ++host) {
      if (host == me_) continue;
      const int member = peers_[static_cast<size_t>(host)];
      const Marks& marks = flight.marks[static_cast<size_t>(host)];
      if (!hosts_.has_received(member, marks.scatter_received)) return false;
      // Combining overwrites the whole block: it must have left.
      if (flight.one_shot && !hosts_.has_sent(member, marks.scatter_sent)) return false;
    }
    return true;
  }

  void combine(Flight& flight) {
    const Numeric& n = flight.block.run->numeric;
    const Range mine = part(flight, me_);
    for_part(flight, mine, [&](const std::byte* in, std::byte* out, uint64_t at, uint64_t count) {
      const std::byte* slots[shm::kMaxRanksPerHost];
      for (int host = 0; host < host_count_; ++host) {
        slots[host] = host == me_ ? nullptr : received_from(flight, host) + at * n.slot_bytes();
      }
      std::byte* result = flight.is_staged && !flight.one_shot
                              ? flight.outgoing + (mine.low + at) * n.slot_bytes()
                              : nullptr;
      combine_between(hosts_.layout(), n,
                      {slots, static_cast<unsigned>(host_count_), static_cast<unsigned>(me_), in,
                       out, result, count});
    });
  }

  void expect_gather(Flight& flight) {
    if (flight.one_shot) return;
    const Numeric& n = flight.block.run->numeric;
    for (int host = 0; host < host_count_; ++host) {
      if (host == me_) continue;
      const int member = peers_[static_cast<size_t>(host)];
      const Range range = part(flight, host);
      Marks& marks = flight.marks[static_cast<size_t>(host)];
      marks.gather_received = 0;
      if (flight.is_staged) {
        marks.gather_received = hosts_.queue_receive(
            member, flight.results + range.low * n.slot_bytes(), range.count * n.slot_bytes());
        continue;
      }
      for_part(flight, range, [&](const std::byte*, std::byte* out, uint64_t, uint64_t count) {
        marks.gather_received = hosts_.queue_receive(member, out, count * n.slot_bytes());
      });
    }
  }

  void gather(Flight& flight) {
    if (flight.one_shot) return;
    const Numeric& n = flight.block.run->numeric;
    const Range mine = part(flight, me_);
    for (int step = 1; step < host_count_; ++step) {
      const int host = (me_ + step) % host_count_;
      const int member = peers_[static_cast<size_t>(host)];
      Marks& marks = flight.marks[static_cast<size_t>(host)];
      marks.gather_sent = 0;
      if (flight.is_staged) {
        marks.gather_sent = hosts_.queue_send(member, flight.outgoing + mine.low * n.slot_bytes(),
                                              mine.count * n.slot_bytes());
        continue;
      }
      for_part(flight, mine, [&](const std::byte*, std::byte* out, uint64_t, uint64_t count) {
        marks.gather_sent = hosts_.queue_send(member, out, count * n.slot_bytes());
      });
    }
  }

  bool is_complete(const Flight& flight) const {
    for (int host = 0; host < host_count_; ++host) {
      if (host == me_) continue;
      const int member = peers_[static_cast<size_t>(host)];
      const Marks& marks = flight.marks[static_cast<size_t>(host)];
      if (!hosts_.has_sent(member, marks.scatter_sent)) return false;
      if (flight.one_shot) continue;
      if (!hosts_.has_sent(member, marks.gather_sent) ||
          !hosts_.has_received(member, marks.gather_received))
        return false;
    }
    return true;
  }

  void finish(Flight& flight) {
    if (!flight.is_staged || flight.one_shot) return;
    const Numeric& n = flight.block.run->numeric;
    for (int host = 0; host < host_count_; ++host) {
      if (host == me_) continue;
      const Range range = part(flight, host);
      for_part(flight, range, [&](const std::byte*, std::byte* out, uint64_t at, uint64_t count) {
        get(n, out, flight.results + (range.low + at) * n.slot_bytes(), count);
      });
    }
  }

  HostLink& hosts_;
  const BlockSequence sequence_;
  const int host_count_;
  const int me_;  // host
  const size_t area_bytes_;
  std::vector<int> peers_;  // member of my lane on each host
  std::vector<Flight> flights_;
  // Each block passes these in order.
  uint64_t expected_ = 0;  // gathers that are queued to be received
  uint64_t started_ = 0, combined_ = 0, gathered_ = 0, finished_ = 0;
};

}  // namespace

std::unique_ptr<HostReduce> make_direct_reduce(HostLink& hosts, const BlockSequence& sequence) {
  return std::make_unique<DirectReduce>(hosts, sequence);
}

}  // namespace hvd::collective::hosts
