// work.h - one agreed operation as the data plane sees it: pieces of memory and how to combine
// them. Owned by the engine's operation; valid until the executor reports it done.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/device.h"
#include "base/status.h"
#include "collective/numeric.h"

namespace hvd::device {
struct Use;
}

namespace hvd::collective {

// A tensor inside a run. `start` counts elements before it in the run.
struct Piece {
  const std::byte* in = nullptr;  // null: zeros
  std::byte* out = nullptr;       // null: dropped
  uint64_t count = 0;
  uint64_t start = 0;
};

// Tensors of one dtype, reduced as if they lay one after the other: fusion without a copy.
struct Run {
  Numeric numeric;
  std::vector<Piece> pieces;
  uint64_t count = 0;  // elements of all pieces

  void clear() {
    pieces.clear();
    count = 0;
  }
  void add(const void* in, void* out, uint64_t elements) {
    pieces.push_back(
        {static_cast<const std::byte*>(in), static_cast<std::byte*>(out), elements, count});
    count += elements;
  }
  // Calls fn(in, out, offset from `first`, count) for each piece part of [first, first + length).
  template <typename Fn>
  void for_range(uint64_t first, uint64_t length, const Fn& fn) const;
};

// Blocks that change hands: allgather, broadcast, alltoall, reducescatter.
struct Exchange {
  bool same_block_for_all = false;  // one block for every receiver, or one per receiver
  bool moves_bytes = false;         // of a type that has no numbers to it: may be objects
  bool reduces = false;  // receivers combine the blocks (reducescatter) instead of storing them
  Numeric numeric;       // when it reduces
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::vector<uint64_t> send_offset, send_bytes;        // per receiver (or one)
  std::vector<uint64_t> receive_offset, receive_bytes;  // per sender; offsets into `out`
  uint64_t largest_block_bytes = 0;  // over all pairs of ranks: how many rounds everybody makes
};

enum class WorkKind { kReduce, kReduceShared, kExchange, kAdasum, kFence };

class Backend;

// How a work is cut into pieces, where that is not left to whoever runs it (0). Agreed like the
// work itself: pieces of different sizes would not meet.
struct Cut {
  enum class Pace : uint8_t { kOwn, kLockstep, kDeep };  // see hosts/pace.h
  uint32_t chunk_bytes = 0;     // in shared memory; each task knows how much it can take
  uint32_t part_bytes = 0;      // between hosts: of a block that one host combines
  uint32_t one_shot_bytes = 0;  // between hosts: blocks up to here are sent whole
  Pace pace = Pace::kOwn;       // between hosts
  uint64_t library_bytes = 0;   // backends that take works from some size on take them from here
  size_t chunk(size_t most) const {
    return chunk_bytes == 0 ? most : std::min<size_t>(chunk_bytes, most);
  }
};

struct Work {
  WorkKind kind = WorkKind::kReduce;
  std::vector<Run> runs;  // reduce, Adasum
  size_t run_count = 0;   // runs in use; the others keep their memory for the next time
  std::vector<Exchange> exchanges;
  std::vector<std::byte*> shared;  // kReduceShared: addresses [piece * ranks + rank], run after run
  std::function<Status()> leader_action;  // kFence: run by member 0 when all have come
  Status status;  // a failure of this rank alone (out of memory); others go on
  Device device;  // of all its buffers
  Cut cut;
  // GPU memory: when inputs are ready; null on a member that has joined.
  device::Use* use = nullptr;
  std::vector<int32_t> devices;  // GPU memory: of all members, as they asked
  Backend* backend = nullptr;    // who runs it; set when it is added to an executor
  // Told what the work goes through, where Backend::activity() is empty; null: nobody looks.
  std::function<void(std::string_view activity)> on_activity;

  Run& next_run() {
    if (run_count == runs.size()) runs.emplace_back();
    runs[run_count].clear();
    return runs[run_count++];
  }
  void reset(WorkKind new_kind) {
    kind = new_kind;
    run_count = 0;
    exchanges.clear();
    shared.clear();
    leader_action = nullptr;
    on_activity = nullptr;
    status = Status::ok();
    device = Device{};
    use = nullptr;
    devices.clear();
  }
};

template <typename Fn>
void Run::for_range(uint64_t first, uint64_t length, const Fn& fn) const {
  if (length == 0) return;
  size_t low = 0;
  for (size_t high = pieces.size(); high - low > 1;) {
    const size_t middle = (low + high) / 2;
    (pieces[middle].start <= first ? low : high) = middle;
  }
  const uint64_t end = first + length;
  const size_t bytes = numeric.element_bytes();
  for (uint64_t at = first; at < end; ++low) {
    const Piece& piece = pieces[low];
    const uint64_t skip = at - piece.start;
    if (skip >= piece.count) continue;  // empty piece
    const uint64_t here = std::min(piece.count - skip, end - at);
    fn(piece.in == nullptr ? nullptr : piece.in + skip * bytes,
       piece.out == nullptr ? nullptr : piece.out + skip * bytes, at - first, here);
    at += here;
  }
}

}  // namespace hvd::collective
