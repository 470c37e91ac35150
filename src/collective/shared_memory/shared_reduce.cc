// Allreduce of buffers that lie in shared memory on every rank: each rank reduces its share of all
// buffers where they lie. The records that announced the operation say that all inputs are ready,
// so one counter per work is enough.
#include "collective/shared_memory/tasks.h"
#include "reduce/kernels.h"

namespace hvd::collective::shared_memory {
namespace {

// A step of poll() stays short even for a huge tensor.
constexpr uint64_t kBytesPerAdvance = 8 << 20;

class SharedReduce final : public Task {
 public:
  SharedReduce(Link& link, Work& work) : link_(link), work_(work) {}

  Progress advance() HVD_REQUIRES(engine_role) override {
    uint64_t left = kBytesPerAdvance;
    while (run_ < work_.run_count) {
      if (!reduce_some(left)) return Progress::kAdvanced;
    }
    if (!posted_) {
      posted_ = true;
      link_.post_result(link_.step + 1);
    }
    if (!link_.all_results(link_.step + 1)) return Progress::kBlocked;
    ++link_.step;
    return Progress::kDone;
  }

 private:
  // Reduces up to `left` bytes of the current piece; false when the allowance is used up.
  bool reduce_some(uint64_t& left) {
    const Run& run = work_.runs[run_];
    if (piece_ == run.pieces.size()) {
      ++run_;
      piece_ = 0;
      return true;
    }
    const Numeric& n = run.numeric;
    const auto ranks = static_cast<unsigned>(link_.size());
    const uint64_t total = run.pieces[piece_].count;
    const uint64_t low = share_begin(total, n.element_bytes(), link_.size(), link_.me()) + done_;
    const uint64_t high = share_begin(total, n.element_bytes(), link_.size(), link_.me() + 1);
    const uint64_t count = high > low ? std::min(high - low, left / n.element_bytes() + 1) : 0;
    if (count > 0) {
      void* buffers[shm::kMaxRanksPerHost];
      for (unsigned r = 0; r < ranks; ++r) {
        buffers[r] = work_.shared[address_ * ranks + r] + low * n.element_bytes();
      }
      kernels().reduce({n.dtype, n.op, count, buffers, ranks, buffers, ranks, n.post});
    }
    done_ += count;
    left -= std::min(left, count * n.element_bytes());
    if (low + count < high) return false;
    ++piece_;
    ++address_;
    done_ = 0;
    return left > 0;
  }

  Link& link_;
  Work& work_;
  size_t run_ = 0;
  size_t piece_ = 0;
  size_t address_ = 0;  // piece counted over all runs
  uint64_t done_ = 0;   // elements of my share of this piece
  bool posted_ = false;
};

}  // namespace

std::unique_ptr<Task> make_shared_reduce(Link& link, Work& work) {
  return std::make_unique<SharedReduce>(link, work);
}

}  // namespace hvd::collective::shared_memory
