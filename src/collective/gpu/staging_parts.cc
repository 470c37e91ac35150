#include "collective/gpu/staging_parts.h"

#include <algorithm>

#include "base/bytes.h"
#include "collective/gpu/nccl_calls.h"

namespace hvd::collective::gpu {
namespace {

uint64_t elements_of_part(const Run& run) { return kPartBytes / run.numeric.element_bytes(); }

uint64_t parts_of_run(const Run& run) {
  return (run.count + elements_of_part(run) - 1) / elements_of_part(run);
}

// Elements [first, first + count) of a run, at `offset` of the part.
void add_range(const Run& run, uint64_t first, uint64_t count, std::byte* memory, Part& part,
               Work& host) {
  Run& inner = host.next_run();
  inner.numeric = run.numeric;
  const uint64_t element = run.numeric.element_bytes();
  const uint64_t base = part.bytes;
  run.for_range(first, count, [&](const std::byte* in, std::byte* out, uint64_t at, uint64_t n) {
    const uint64_t offset = base + at * element;
    if (in != nullptr) part.in.push_back({const_cast<std::byte*>(in), offset, n * element});
    if (out != nullptr) part.out.push_back({out, offset, n * element});
    std::byte* here = memory == nullptr ? nullptr : memory + offset;
    inner.add(in == nullptr ? nullptr : here, out == nullptr ? nullptr : here, n);
  });
  part.bytes = align_up(base + count * element, 64);
}

void add_exchange(const Exchange& x, std::byte* memory, Part& part, Work& host) {
  Exchange inner = x;
  const uint64_t in_bytes = input_bytes(x), out_bytes = output_bytes(x);
  const uint64_t in_at = part.bytes, out_at = align_up(in_at + in_bytes, 64);
  if (x.in != nullptr && in_bytes > 0)
    part.in.push_back({const_cast<std::byte*>(x.in), in_at, in_bytes});
  if (x.out != nullptr && out_bytes > 0) part.out.push_back({x.out, out_at, out_bytes});
  inner.in = memory == nullptr || x.in == nullptr ? nullptr : memory + in_at;
  inner.out = memory == nullptr || x.out == nullptr ? nullptr : memory + out_at;
  host.exchanges.push_back(std::move(inner));
  part.bytes = align_up(out_at + out_bytes, 64);
}

}  // namespace

uint64_t part_count(const Work& work) {
  if (work.kind != WorkKind::kReduce) return 1;
  uint64_t count = 0;
  for (size_t r = 0; r < work.run_count; ++r) count += parts_of_run(work.runs[r]);
  return count;
}

uint64_t largest_part(const Work& work) {
  if (work.kind == WorkKind::kReduce) return kPartBytes + 64;
  Part part;
  Work host;
  make_part(work, 0, nullptr, part, host);
  return std::max<uint64_t>(part.bytes, 64);
}

void make_part(const Work& work, uint64_t index, std::byte* memory, Part& part, Work& host) {
  part = Part{};
  host.reset(work.kind);
  host.cut = work.cut;
  if (work.kind == WorkKind::kReduce) {
    size_t r = 0;
    for (; index >= parts_of_run(work.runs[r]); ++r) index -= parts_of_run(work.runs[r]);
    const Run& run = work.runs[r];
    const uint64_t first = index * elements_of_part(run);
    add_range(run, first, std::min(elements_of_part(run), run.count - first), memory, part, host);
    return;
  }
  for (size_t r = 0; r < work.run_count; ++r)
    add_range(work.runs[r], 0, work.runs[r].count, memory, part, host);
  for (const Exchange& x : work.exchanges) add_exchange(x, memory, part, host);
}

}  // namespace hvd::collective::gpu
