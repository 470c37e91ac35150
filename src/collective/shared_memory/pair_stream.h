// pair_stream.h - allreduce between two ranks with private buffers: half exchange in place.
// Each rank owns one half of every chunk. It copies the other half into its own slot; the peer adds
// its own data, keeps the sum and writes it back into the same slot lines; the rank copies it out.
// A line of memory therefore moves between the cores twice and is never shared, which is what costs
// inside a host.
//
// The chunks of following works join the stream while it runs: the pipeline (copy in i, reduce i -
// 1, copy out i - 2) does not drain between tensors. Ranks need not agree where a stream ends,
// because counters and slot positions depend only on the sequence of chunks.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "collective/shared_memory/tasks.h"

namespace hvd::collective::shared_memory {

class PairStream {
 public:
  // Takes works of `owner`.
  PairStream(Link& link, const Backend& owner) : link_(link), owner_(owner) {}
  void abandon() HVD_REQUIRES(engine_role) {
    chunks_.clear();
    at_ = 0;
    stage_ = 0;
  }

  bool is_idle() const { return chunks_.empty(); }
  bool takes_first(const std::deque<Work*>& queue) const {
    return link_.size() == 2 && !queue.empty() && queue.front()->kind == WorkKind::kReduce &&
           queue.front()->backend == &owner_;
  }
  // Takes reduce works off the front of `queue`; finished works are appended to `done`.
  Progress advance(std::deque<Work*>& queue, std::vector<Work*>& done) HVD_REQUIRES(engine_role);

 private:
  struct Chunk {
    const Run* run;
    Work* completes;  // set on the last chunk of a work
    uint64_t first;   // element of the run
    uint32_t count;
    uint32_t slot;  // offset in both rings
  };
  void pull(std::deque<Work*>& queue, std::vector<Work*>& done);
  void append(Work& work);
  uint32_t take_slot(size_t bytes);
  void copy_in(const Chunk& chunk);
  void reduce(const Chunk& chunk);
  void copy_out(const Chunk& chunk);

  Link& link_;
  const Backend& owner_;
  std::vector<Chunk> chunks_;
  size_t at_ = 0;  // chunk that enters the pipeline next
  int stage_ = 0;  // 0 copy in, 1 reduce, 2 copy out
  uint32_t ring_position_ = 0;
};

}  // namespace hvd::collective::shared_memory
