// Allreduce among any number of ranks with private buffers: everybody copies a chunk into its
// staging, then each rank reduces its share of all stagings in place, then everybody copies its own
// staging out. One staging buffer per rank: where ranks outnumber cores a small footprint beats a
// deeper pipeline.
#include "collective/shared_memory/tasks.h"
#include "reduce/kernels.h"

namespace hvd::collective::shared_memory {
namespace {

// One advance stays short: about a millisecond.
constexpr int kStagesPerAdvance = 8;

class StagedReduce final : public Task {
 public:
  StagedReduce(Link& link, Work& work) : link_(link), work_(work) {}

  Progress advance() HVD_REQUIRES(engine_role) override {
    for (int turn = 0; turn < kStagesPerAdvance; ++turn) {
      switch (stage_) {
        case Stage::kNext:
          if (!next_chunk()) return Progress::kDone;
          stage_ = Stage::kFree;
          [[fallthrough]];
        case Stage::kFree:
          // Whoever still reads my staging from an earlier work has not posted that work's last
          // result.
          if (!link_.all_results(link_.step)) return Progress::kBlocked;
          copy_in();
          link_.post_ready(link_.step + 1);
          stage_ = Stage::kReduce;
          [[fallthrough]];
        case Stage::kReduce:
          if (!link_.all_ready(link_.step + 1)) return Progress::kBlocked;
          reduce_share();
          link_.post_result(link_.step + 1);
          stage_ = Stage::kCopyOut;
          [[fallthrough]];
        case Stage::kCopyOut:
          if (!link_.all_results(link_.step + 1)) return Progress::kBlocked;
          copy_out();
          ++link_.step;
          first_ += count_;
          stage_ = Stage::kNext;
      }
    }
    return Progress::kAdvanced;
  }

 private:
  enum class Stage { kNext, kFree, kReduce, kCopyOut };

  bool next_chunk() {
    while (run_ < work_.run_count && first_ == run().count) {
      ++run_;
      first_ = 0;
    }
    if (run_ == work_.run_count) return false;
    count_ = std::min<uint64_t>(work_.cut.chunk(kStagingBytes) / run().numeric.slot_bytes(),
                                run().count - first_);
    return true;
  }

  const Run& run() const { return work_.runs[run_]; }

  void copy_in() {
    const Numeric& n = run().numeric;
    std::byte* staging = link_.staging(link_.me());
    run().for_range(first_, count_,
                    [&](const std::byte* in, std::byte*, uint64_t at, uint64_t count) {
                      put(n, staging + at * n.slot_bytes(), in, count);
                    });
  }

  void reduce_share() {
    const Numeric& n = run().numeric;
    const uint64_t low = share_begin(count_, n.slot_bytes(), link_.size(), link_.me());
    const uint64_t high = share_begin(count_, n.slot_bytes(), link_.size(), link_.me() + 1);
    if (high == low) return;
    void* slots[shm::kMaxRanksPerHost];
    for (int r = 0; r < link_.size(); ++r) slots[r] = link_.staging(r) + low * n.slot_bytes();
    const auto ranks = static_cast<unsigned>(link_.size());
    kernels().reduce({n.slot_dtype, n.op, high - low, slots, ranks, slots, ranks, n.post});
  }

  void copy_out() {
    const Numeric& n = run().numeric;
    const std::byte* staging = link_.staging(link_.me());
    run().for_range(first_, count_,
                    [&](const std::byte*, std::byte* out, uint64_t at, uint64_t count) {
                      get(n, out, staging + at * n.slot_bytes(), count);
                    });
  }

  Link& link_;
  Work& work_;
  Stage stage_ = Stage::kNext;
  size_t run_ = 0;
  uint64_t first_ = 0;
  uint64_t count_ = 0;
};

}  // namespace

std::unique_ptr<Task> make_staged_reduce(Link& link, Work& work) {
  return std::make_unique<StagedReduce>(link, work);
}

}  // namespace hvd::collective::shared_memory
