#include "collective/shared_memory/pair_stream.h"

namespace hvd::collective::shared_memory {
namespace {

// Bounds the list; the pipeline then drains once, which costs about a microsecond.
constexpr size_t kMaxChunks = 4096;
// One advance stays short, so that a caller's deadline and poll() hold: about a millisecond.
constexpr int kChunksPerAdvance = 64;

}  // namespace

uint32_t PairStream::take_slot(size_t bytes) {
  const auto need = static_cast<uint32_t>(align_up(bytes, kLineSpacing));
  if (ring_position_ + need > kPairRingBytes) ring_position_ = 0;
  const uint32_t slot = ring_position_;
  ring_position_ += need;
  return slot;
}

void PairStream::append(Work& work) {
  const size_t chunk_bytes =
      work.cut.chunk_bytes == 0 ? kPairChunkBytes : work.cut.chunk(kMostPairChunkBytes);
  for (size_t r = 0; r < work.run_count; ++r) {
    const Run& run = work.runs[r];
    const uint64_t step = chunk_bytes / run.numeric.slot_bytes();
    for (uint64_t first = 0; first < run.count; first += step) {
      const auto count = static_cast<uint32_t>(std::min(step, run.count - first));
      chunks_.push_back({&run, nullptr, first, count, 0});
    }
  }
}

void PairStream::pull(std::deque<Work*>& queue, std::vector<Work*>& done) {
  while (takes_first(queue) && chunks_.size() < kMaxChunks) {
    Work& work = *queue.front();
    const size_t before = chunks_.size();
    append(work);
    queue.pop_front();
    if (chunks_.size() == before) {
      done.push_back(&work);  // no elements
    } else {
      chunks_.back().completes = &work;
    }
  }
}

void PairStream::copy_in(const Chunk& chunk) {
  const Numeric& n = chunk.run->numeric;
  const int peer = 1 - link_.me();
  const uint64_t low = share_begin(chunk.count, n.slot_bytes(), 2, peer);
  const uint64_t high = share_begin(chunk.count, n.slot_bytes(), 2, peer + 1);
  std::byte* slot = link_.pair_ring(link_.me()) + chunk.slot;
  chunk.run->for_range(chunk.first + low, high - low,
                       [&](const std::byte* in, std::byte*, uint64_t at, uint64_t count) {
                         put(n, slot + at * n.slot_bytes(), in, count);
                       });
}

void PairStream::reduce(const Chunk& chunk) {
  const Numeric& n = chunk.run->numeric;
  const int me = link_.me();
  const uint64_t low = share_begin(chunk.count, n.slot_bytes(), 2, me);
  const uint64_t high = share_begin(chunk.count, n.slot_bytes(), 2, me + 1);
  std::byte* slot = link_.pair_ring(1 - me) + chunk.slot;
  chunk.run->for_range(chunk.first + low, high - low,
                       [&](const std::byte* in, std::byte* out, uint64_t at, uint64_t count) {
                         std::byte* theirs = slot + at * n.slot_bytes();
                         const std::byte* slots[2] = {theirs, theirs};
                         combine(n, {slots, 2, static_cast<unsigned>(me), in, out, theirs, count});
                       });
}

void PairStream::copy_out(const Chunk& chunk) {
  const Numeric& n = chunk.run->numeric;
  const int peer = 1 - link_.me();
  const uint64_t low = share_begin(chunk.count, n.slot_bytes(), 2, peer);
  const uint64_t high = share_begin(chunk.count, n.slot_bytes(), 2, peer + 1);
  const std::byte* slot = link_.pair_ring(link_.me()) + chunk.slot;
  chunk.run->for_range(chunk.first + low, high - low,
                       [&](const std::byte*, std::byte* out, uint64_t at, uint64_t count) {
                         get(n, out, slot + at * n.slot_bytes(), count);
                       });
}

Progress PairStream::advance(std::deque<Work*>& queue, std::vector<Work*>& done) {
  const int peer = 1 - link_.me();
  Progress progress = Progress::kBlocked;
  for (int turn = 0; turn < kChunksPerAdvance; ++turn) {
    // Works join only here, before the pipeline begins to drain: joining later would skip a stage.
    if (stage_ == 0 && at_ == chunks_.size()) pull(queue, done);
    if (chunks_.empty()) return Progress::kDone;
    const size_t count = chunks_.size();
    if (stage_ == 0) {
      if (at_ < count) {
        Chunk& chunk = chunks_[at_];
        chunk.slot = take_slot((chunk.count + kCacheLine) / 2 * chunk.run->numeric.slot_bytes() +
                               kCacheLine);
        copy_in(chunk);
        link_.post_ready(link_.step + static_cast<uint32_t>(at_) + 1);
      }
      stage_ = 1;
    }
    if (stage_ == 1) {
      if (at_ >= 1 && at_ - 1 < count) {
        const auto step = link_.step + static_cast<uint32_t>(at_);
        if (!link_.has_ready(peer, step)) return progress;
        reduce(chunks_[at_ - 1]);
        link_.post_result(step);
      }
      stage_ = 2;
    }
    if (at_ >= 2) {
      if (!link_.has_result(peer, link_.step + static_cast<uint32_t>(at_) - 1)) return progress;
      copy_out(chunks_[at_ - 2]);
      if (chunks_[at_ - 2].completes != nullptr) done.push_back(chunks_[at_ - 2].completes);
    }
    stage_ = 0;
    ++at_;
    progress = Progress::kAdvanced;
    if (at_ == count + 2) {
      link_.step += static_cast<uint32_t>(count);
      chunks_.clear();
      at_ = 0;
      return Progress::kDone;
    }
    if (!done.empty()) return Progress::kAdvanced;  // let the engine complete it
  }
  return Progress::kAdvanced;
}

}  // namespace hvd::collective::shared_memory
