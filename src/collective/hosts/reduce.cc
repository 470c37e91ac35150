// Allreduce over hosts. Where hosts have one member each, blocks go from the user's memory to the
// network and back. Otherwise a chunk passes five stations, several chunks at a time:
//   every member copies it into its staging             -> ready
//   lane i reduces shard i of all stagings into its own
//   lane i reduces the shard with the lanes i of other hosts
//   the shard is final                                   -> result, odd
//   every member copies all shards out of the lanes' stagings -> result, even
// Chunk c uses slot c mod kDepth of the staging; it is refilled when all members of the host have
// copied out what was there. A chunk takes two steps of the link.
#include <algorithm>
#include <array>

#include "collective/hosts/host_reduce.h"
#include "collective/hosts/tasks.h"
#include "collective/hosts/two_level.h"
#include "collective/shares.h"

namespace hvd::collective::hosts {
namespace {

using shared_memory::Link;

// One advance stays short: about a millisecond.
constexpr int kTurnsPerAdvance = 16;

// What one lane has of all bytes.
WorkSize size_of_lane(const HostLayout& layout, const Work& work) {
  WorkSize size = size_of(work);
  size.bytes /= static_cast<uint64_t>(layout.lanes);
  return size;
}

// Where the parts of a ring begin decides in which order their elements are added, so its blocks
// have one size, however the work is to be cut: a tuning changes no bit.
bool is_ring(const HostLayout& layout, const Work& work) {
  return goes_by_ring(size_of_lane(layout, work), layout.host_count());
}

// For works between streams; a ring has an overlap of its own. `lane` is what one lane has of all
// bytes.
Pace begin(HostLink& hosts, const Work& work, const WorkSize& lane, uint64_t bytes) {
  const auto number = static_cast<uint32_t>(work.kind);
  if (!goes_by_ring(lane, hosts.layout().host_count()))
    return hosts.begin_paced_work(number, bytes, work.cut.pace);
  hosts.begin_work(number, bytes);
  return Pace::kLockstep;
}

// Walks over the runs of a work in blocks of equal size; every run begins a new block.
class BlockWalk {
 public:
  BlockWalk(const Work& work, size_t bytes) : work_(work), bytes_(bytes) {}
  uint64_t count_all() const {
    uint64_t blocks = 0;
    for (size_t r = 0; r < work_.run_count; ++r) {
      const uint64_t step = step_of(work_.runs[r]);
      blocks += (work_.runs[r].count + step - 1) / step;
    }
    return blocks;
  }
  // Only if one is left.
  Block next() {
    while (first_ == work_.runs[run_].count) {
      ++run_;
      first_ = 0;
    }
    const Run& run = work_.runs[run_];
    const Block block{&run, first_, std::min(step_of(run), run.count - first_)};
    first_ += block.count;
    return block;
  }

 private:
  uint64_t step_of(const Run& run) const { return bytes_ / run.numeric.slot_bytes(); }

  const Work& work_;
  const size_t bytes_;
  size_t run_ = 0;
  uint64_t first_ = 0;
};

// One member per host.
class FlatReduce final : public Task {
 public:
  FlatReduce(HostLink& hosts, const Work& work, const FlatWay& way)
      : hosts_(hosts), walk_(work, way.block_bytes), blocks_(walk_.count_all()) {
    const WorkSize size = size_of(work);
    network_ = way.make(
        hosts,
        {.block_count = blocks_,
         .largest_bytes = static_cast<size_t>(std::min<uint64_t>(size.bytes, way.block_bytes)),
         .work = size,
         .pace = way.pace,
         .one_shot_bytes = one_shot_bytes_for(work.cut)});
  }

  Progress advance() HVD_REQUIRES(engine_role) override {
    bool moved = false;
    for (int turn = 0; turn < kTurnsPerAdvance; ++turn) {
      bool now = false;
      while (network_->can_start()) {
        network_->start(walk_.next());
        now = true;
      }
      now = network_->advance() || now;
      if (network_->finished() == blocks_) {
        hosts_.finish_paced_work();
        return Progress::kDone;
      }
      if (!now) break;
      moved = true;
    }
    return moved ? Progress::kAdvanced : Progress::kBlocked;
  }

 private:
  HostLink& hosts_;
  BlockWalk walk_;
  const uint64_t blocks_;
  std::unique_ptr<HostReduce> network_;
};

// Several members on some host.
class TwoLevelReduce final : public Task {
  static constexpr uint32_t kDepth = 4;
  static constexpr size_t kSlotBytes = shared_memory::kStagingBytes / kDepth;

 public:
  TwoLevelReduce(Link& local, HostLink& hosts, Work& work)
      : local_(local),
        hosts_(hosts),
        walk_(work, is_ring(hosts.layout(), work) ? kSlotBytes : work.cut.chunk(kSlotBytes)),
        chunks_(static_cast<uint32_t>(walk_.count_all())) {
    const WorkSize size = size_of_lane(hosts.layout(), work);
    if (is_ring(hosts.layout(), work)) order_ = HostOrder::kRing;
    const Pace pace = begin(hosts, work, size, size_of(work).bytes);
    if (!hosts.is_lane()) return;
    network_ = make_host_reduce(
        hosts, {.block_count = chunks_,
                .largest_bytes = kSlotBytes / static_cast<size_t>(lanes()) + kCacheLine,
                .work = size,
                .pace = shape_of(pace),
                .one_shot_bytes = one_shot_bytes_for(work.cut)});
  }

  Progress advance() HVD_REQUIRES(engine_role) override {
    bool moved = false;
    for (int turn = 0; turn < kTurnsPerAdvance; ++turn) {
      if (copied_out_ == chunks_) {
        local_.step += 2 * chunks_;
        hosts_.finish_paced_work();
        return Progress::kDone;
      }
      const bool in = copy_in(), sum = reduce_shard();
      const bool wire = network_ != nullptr && network_->advance();
      const bool end = post_final(), out = copy_out();
      if (!in && !sum && !wire && !end && !out) break;
      moved = true;
    }
    return moved ? Progress::kAdvanced : Progress::kBlocked;
  }

 private:
  struct Chunk {
    Block block;
    Run shard;  // my shard, in my staging
  };

  int lanes() const { return hosts_.layout().lanes; }
  Chunk& chunk(uint32_t number) { return slots_[number % kDepth]; }
  std::byte* slot(int member, uint32_t number) const {
    return local_.staging(member) + (number % kDepth) * kSlotBytes;
  }
  uint64_t shard_begin(const Block& block, int lane) const {
    return share_begin(block.count, block.run->numeric.slot_bytes(), lanes(), lane);
  }
  bool copy_in() HVD_REQUIRES(engine_role) {
    if (copied_in_ == chunks_ || copied_in_ - copied_out_ == kDepth) return false;
    // Everybody has read what was in the slot; in the first chunks, what earlier works left there.
    const uint32_t freed = copied_in_ < kDepth ? 0 : 2 * (copied_in_ - kDepth + 1);
    if (!local_.all_results(local_.step + freed)) return false;
    Chunk& now = chunk(copied_in_);
    now.block = walk_.next();
    const Numeric& n = now.block.run->numeric;
    std::byte* staging = slot(local_.me(), copied_in_);
    now.block.run->for_range(now.block.first, now.block.count,
                             [&](const std::byte* in, std::byte*, uint64_t at, uint64_t count) {
                               put(n, staging + at * n.slot_bytes(), in, count);
                             });
    local_.post_ready(local_.step + ++copied_in_);
    return true;
  }

  bool reduce_shard() HVD_REQUIRES(engine_role) {
    if (network_ == nullptr || reduced_ == copied_in_) return false;
    if (!local_.all_ready(local_.step + reduced_ + 1)) return false;
    Chunk& now = chunk(reduced_);
    const Numeric& n = now.block.run->numeric;
    const uint64_t low = shard_begin(now.block, local_.me());
    const uint64_t count = shard_begin(now.block, local_.me() + 1) - low;
    if (!network_->can_start()) return false;
    void* sources[shm::kMaxRanksPerHost];
    for (int r = 0; r < local_.size(); ++r) sources[r] = slot(r, reduced_) + low * n.slot_bytes();
    void* mine = sources[local_.me()];
    const TwoLevel levels = TwoLevel::of(n, hosts_.layout(), order_);
    const auto members = static_cast<unsigned>(local_.size());
    if (count > 0) {
      kernels().reduce(
          {n.slot_dtype, n.op, count, sources, members, &mine, 1, levels.inside(members)});
    }
    now.shard.clear();
    now.shard.numeric = levels.between;
    now.shard.add(mine, mine, count);
    // An empty shard too: blocks that overlap wait for those after them.
    network_->start({&now.shard, 0, count});
    ++reduced_;
    return true;
  }

  bool post_final() HVD_REQUIRES(engine_role) {
    // Results are posted in order: what was copied out before the next is final.
    if (network_ == nullptr || final_ == reduced_ || copied_out_ < final_) return false;
    if (network_->finished() <= final_) return false;
    local_.post_result(local_.step + 2 * final_ + 1);
    ++final_;
    return true;
  }

  bool copy_out() HVD_REQUIRES(engine_role) {
    if (copied_out_ == copied_in_) return false;
    if (network_ != nullptr && copied_out_ == final_) return false;
    const Block& block = chunk(copied_out_).block;
    for (int lane = 0; lane < lanes(); ++lane) {
      if (lane != local_.me() && !local_.has_result(lane, local_.step + 2 * copied_out_ + 1))
        return false;
    }
    const Numeric& n = block.run->numeric;
    for (int lane = 0; lane < lanes(); ++lane) {
      const uint64_t low = shard_begin(block, lane), high = shard_begin(block, lane + 1);
      const std::byte* from = slot(lane, copied_out_) + low * n.slot_bytes();
      block.run->for_range(block.first + low, high - low,
                           [&](const std::byte*, std::byte* out, uint64_t at, uint64_t count) {
                             get(n, out, from + at * n.slot_bytes(), count);
                           });
    }
    local_.post_result(local_.step + 2 * ++copied_out_);
    return true;
  }

  Link& local_;
  HostLink& hosts_;
  BlockWalk walk_;
  const uint32_t chunks_;
  HostOrder order_ = HostOrder::kAtOnce;
  std::unique_ptr<HostReduce> network_;  // null: this member drives no lane
  std::array<Chunk, kDepth> slots_;
  // Chunks that have passed each station.
  uint32_t copied_in_ = 0, reduced_ = 0, final_ = 0, copied_out_ = 0;
};

}  // namespace

std::unique_ptr<Task> make_flat_reduce(HostLink& hosts, const Work& work, const FlatWay& way) {
  return std::make_unique<FlatReduce>(hosts, work, way);
}

std::unique_ptr<HostReduce> make_host_reduce(HostLink& hosts, const BlockSequence& sequence) {
  const bool ring = goes_by_ring(sequence.work, hosts.layout().host_count());
  return ring ? make_ring_reduce(hosts, sequence) : make_direct_reduce(hosts, sequence);
}

std::unique_ptr<Task> make_reduce(Link& local, HostLink& hosts, Work& work) {
  if (hosts.layout().size() == hosts.layout().host_count()) {
    const WorkSize size = size_of(work);
    PaceShape pace = shape_of(begin(hosts, work, size, size.bytes));
    if (work.cut.part_bytes > 0 && !is_ring(hosts.layout(), work))
      pace.part_bytes = work.cut.part_bytes;
    return make_flat_reduce(
        hosts, work,
        {.pace = pace,
         .block_bytes = block_bytes_for(hosts.layout().host_count(), pace.part_bytes),
         .make = make_host_reduce});
  }
  return std::make_unique<TwoLevelReduce>(local, hosts, work);
}

}  // namespace hvd::collective::hosts
