#include "control/board.h"

namespace hvd::control {
namespace {

size_t low_stride_of(int size) {
  // One line group of counters per reader, and a line for its position in the log.
  return align_up(static_cast<size_t>(size) * sizeof(uint32_t), kLineSpacing) + kLineSpacing;
}

}  // namespace

uint64_t Board::region_bytes(int size) {
  const auto ranks = static_cast<uint64_t>(size);
  return align_up(
             ranks * low_stride_of(size) + kLogEntries * sizeof(uint64_t) + ranks * kRecordStride,
             4096) +
         ranks * kEagerStride;
}

Board::Board(std::byte* region, int size) : size_(size), low_stride_(low_stride_of(size)) {
  const auto ranks = static_cast<size_t>(size);
  lows_ = region;
  log_ = reinterpret_cast<std::atomic<uint64_t>*>(lows_ + ranks * low_stride_);
  records_ = reinterpret_cast<std::byte*>(log_ + kLogEntries);
  eager_ = region + align_up(static_cast<size_t>(records_ - region) + ranks * kRecordStride, 4096);
}

bool Board::is_nonsense(int rank, uint32_t index) const {
  const uint32_t seq = record(rank, index).seq.load(std::memory_order_acquire);
  const bool awaited = seq == index + 1;
  const bool last_lap = index >= kRecords ? seq == index + 1 - kRecords : seq == 0;
  // 2^32 records later the first lap looks like any other.
  const bool wrapped = index < kRecords && seq == index + 1 - kRecords;
  return !awaited && !last_lap && !wrapped;
}

}  // namespace hvd::control
