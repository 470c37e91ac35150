// The blocks of a sequence go through the allreduce of the library below the mesh: from the user's
// memory where a block is one plain piece of it, through scratch otherwise. A few at a time, so
// that one is under way while another is copied and scaled; in pieces, because libraries handle
// large vectors in their non-blocking form less well than some megabytes.
#include <array>

#include "base/bytes.h"
#include "collective/library/library_reduce.h"
#include "net/lane_reduce.h"

namespace hvd::collective::library {
namespace {

using hosts::Block;
using hosts::BlockSequence;
using hosts::HostLink;
using hosts::HostReduce;

constexpr uint64_t kInFlight = 2;

class LibraryReduce final : public HostReduce {
 public:
  LibraryReduce(HostLink& hosts, const BlockSequence& sequence)
      : hosts_(hosts),
        sequence_(sequence),
        area_bytes_(align_up(sequence.largest_bytes, kCacheLine)) {}
  ~LibraryReduce() override { hosts_.set_library_works(false); }

  bool can_start() const override {
    return started_ - finished_ < kInFlight && started_ < sequence_.block_count;
  }

  void start(const Block& block) HVD_REQUIRES(engine_role) override {
    Turn& turn = turns_[started_ % kInFlight];
    turn = {.block = block};
    const Numeric& n = block.run->numeric;
    find_memory(turn);
    if (turn.in == nullptr) {
      turn.out = hosts_.scratch(kInFlight * area_bytes_) + (started_ % kInFlight) * area_bytes_;
      turn.in = turn.out;
      turn.is_copied = true;
      block.run->for_range(block.first, block.count,
                           [&](const std::byte* in, std::byte*, uint64_t at, uint64_t count) {
                             put(n, turn.out + at * n.slot_bytes(), in, count);
                           });
    }
    auto number = hosts_.library()->start(turn.in, turn.out, block.count, n.slot_dtype, n.op);
    if (!number) return hosts_.fail(number.status());
    turn.number = *number;
    ++started_;
    hosts_.set_library_works(true);
  }

  bool advance() HVD_REQUIRES(engine_role) override {
    bool moved = false;
    while (finished_ < started_ && !hosts_.has_failed()) {
      Turn& turn = turns_[finished_ % kInFlight];
      const auto is_done = hosts_.library()->is_done(turn.number);
      if (!is_done) hosts_.fail(is_done.status());
      if (!is_done || !*is_done) break;
      finish(turn);
      ++finished_;
      moved = true;
    }
    hosts_.set_library_works(finished_ < started_);
    return moved;
  }

  uint64_t finished() const override { return finished_; }

 private:
  struct Turn {
    Block block{};
    const std::byte* in = nullptr;
    std::byte* out = nullptr;
    bool is_copied = false;
    uint64_t number = 0;
  };

  // The user's own, if the block is one piece of it and travels as it is.
  static void find_memory(Turn& turn) {
    const Block& block = turn.block;
    if (!block.run->numeric.is_plain()) return;
    block.run->for_range(block.first, block.count,
                         [&](const std::byte* in, std::byte* out, uint64_t at, uint64_t count) {
                           if (at != 0 || count != block.count || out == nullptr) return;
                           turn.in = in;
                           turn.out = out;
                         });
  }

  static void finish(const Turn& turn) {
    const Block& block = turn.block;
    const Numeric& n = block.run->numeric;
    if (!n.post.is_identity())
      kernels().scale(n.slot_dtype, turn.out, turn.out, block.count, n.post);
    if (!turn.is_copied) return;
    block.run->for_range(block.first, block.count,
                         [&](const std::byte*, std::byte* out, uint64_t at, uint64_t count) {
                           get(n, out, turn.out + at * n.slot_bytes(), count);
                         });
  }

  HostLink& hosts_;
  const BlockSequence sequence_;
  const size_t area_bytes_;
  std::array<Turn, kInFlight> turns_;
  uint64_t started_ = 0, finished_ = 0;
};

}  // namespace

std::unique_ptr<HostReduce> make_library_reduce(HostLink& hosts, const BlockSequence& sequence) {
  return std::make_unique<LibraryReduce>(hosts, sequence);
}

}  // namespace hvd::collective::library
