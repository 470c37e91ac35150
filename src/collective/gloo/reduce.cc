#include "collective/gloo/reduce.h"

#include <algorithm>

namespace hvd::collective::gloo {
namespace {

// Tensors that are reduced together, or travel in another form, are copied: so much at a time.
constexpr uint64_t kBlockBytes = 32 << 20;

// From the user's memory, where this member has it; a member that has joined has none.
Status reduce_in_place(Group& group, Scratch& scratch, const Run& run) {
  const Numeric& n = run.numeric;
  const Piece& piece = run.pieces.front();
  const bool has_memory = piece.in != nullptr && piece.out != nullptr;
  std::byte* const out = has_memory ? piece.out : scratch.get(run.count * n.slot_bytes());
  if (!has_memory) put(n, out, piece.in, run.count);
  HVD_TRY(group.allreduce(has_memory ? piece.in : out, out, run.count, n.slot_dtype, n.op));
  if (!n.post.is_identity()) kernels().scale(n.slot_dtype, out, out, run.count, n.post);
  if (!has_memory) get(n, piece.out, out, run.count);
  return Status::ok();
}

Status reduce_block(Group& group, std::byte* memory, const Run& run, uint64_t first,
                    uint64_t count) {
  const Numeric& n = run.numeric;
  run.for_range(first, count, [&](const std::byte* in, std::byte*, uint64_t at, uint64_t part) {
    put(n, memory + at * n.slot_bytes(), in, part);
  });
  HVD_TRY(group.allreduce(memory, memory, count, n.slot_dtype, n.op));
  if (!n.post.is_identity()) kernels().scale(n.slot_dtype, memory, memory, count, n.post);
  run.for_range(first, count, [&](const std::byte*, std::byte* out, uint64_t at, uint64_t part) {
    get(n, out, memory + at * n.slot_bytes(), part);
  });
  return Status::ok();
}

Status reduce_run(Group& group, Scratch& scratch, const Run& run) {
  if (run.count == 0) return Status::ok();
  // Whether there is memory is no agreed value: it must not decide about the number of calls.
  if (run.pieces.size() == 1 && run.numeric.is_plain()) return reduce_in_place(group, scratch, run);
  const uint64_t block = std::min(run.count, kBlockBytes / run.numeric.slot_bytes());
  std::byte* const memory = scratch.get(block * run.numeric.slot_bytes());
  for (uint64_t first = 0; first < run.count; first += block) {
    HVD_TRY(reduce_block(group, memory, run, first, std::min(block, run.count - first)));
  }
  return Status::ok();
}

}  // namespace

Status run_reduce(Group& group, Scratch& scratch, const Work& work) {
  for (size_t r = 0; r < work.run_count; ++r) {
    HVD_TRY(reduce_run(group, scratch, work.runs[r]));
  }
  return Status::ok();
}

}  // namespace hvd::collective::gloo
