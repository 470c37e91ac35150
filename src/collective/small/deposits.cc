#include "collective/small/deposits.h"

#include <cstring>

#include "base/cpu.h"
#include "collective/adasum.h"
#include "collective/small/combine_by_host.h"
#include "shm/job_layout.h"

namespace hvd::collective::small {
namespace {

alignas(64) const std::byte kZeros[kMostDepositBytes] = {};

void copy_block(std::byte* to, const std::byte* from, uint64_t bytes) {
  if (bytes > 0 && to != nullptr && from != to) std::memmove(to, from, bytes);
}

// What a member gives, `offset` bytes into its deposit, which for this one begins at `own`.
const std::byte* given(const Deposits& deposits, int member, const std::byte* own,
                       uint64_t offset) {
  return member == deposits.me ? own : deposits.of[member] + offset;
}

}  // namespace

void reduce(const Deposits& deposits, uint64_t offset, const Numeric& numeric,
            const Buffers& buffers, uint64_t count) {
  if (count == 0) return;
  const std::byte* slots[shm::kMaxRanks];
  for (int r = 0; r < deposits.count; ++r)
    slots[r] = deposits.of[r] == nullptr ? kZeros : deposits.of[r] + offset;
  const Combine args{slots,
                     static_cast<unsigned>(deposits.count),
                     static_cast<unsigned>(deposits.me),
                     buffers.in,
                     buffers.out,
                     nullptr,
                     count};
  if (HVD_UNLIKELY(deposits.hosts != nullptr)) {
    combine_by_host(*deposits.hosts, numeric, args);
  } else {
    combine(numeric, args);
  }
}

void reduce_plain(const Deposits& deposits, const Numeric& numeric, const Buffers& buffers,
                  uint64_t count) {
  if (HVD_UNLIKELY(deposits.hosts != nullptr)) {
    return combine_by_host(
        *deposits.hosts, numeric,
        {deposits.of, static_cast<unsigned>(deposits.count), static_cast<unsigned>(deposits.me),
         buffers.in, buffers.out, nullptr, count});
  }
  const void* sources[shm::kMaxRanks];
  for (int r = 0; r < deposits.count; ++r) sources[r] = deposits.of[r];
  sources[deposits.me] = buffers.in;
  void* output = buffers.out;
  kernels().reduce({numeric.dtype, numeric.op, count, sources,
                    static_cast<unsigned>(deposits.count), &output, 1, numeric.post});
}

void adasum(const Deposits& deposits, uint64_t offset, const Numeric& numeric,
            const Buffers& buffers, uint64_t count) {
  const DType work = adasum_work_dtype(numeric.dtype);
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::byte*> vectors;
  for (int r = 0; r < deposits.count; ++r) {
    memory.emplace_back(count * dtype_bytes(work));
    const bool is_zeros = r != deposits.me && deposits.of[r] == nullptr;
    adasum_load(numeric, memory.back().data(),
                is_zeros ? nullptr : given(deposits, r, buffers.in, offset), count);
    vectors.push_back(memory.back().data());
  }
  adasum_locally(work, vectors, count);
  adasum_store(numeric, buffers.out, vectors[0], count);
}

void broadcast(const Deposits& deposits, int root, const Buffers& buffers, uint64_t bytes) {
  copy_block(buffers.out, given(deposits, root, buffers.in, 0), bytes);
}

void gather(const Deposits& deposits, std::span<const uint64_t> begin, std::span<uint64_t> read,
            const Buffers& buffers) {
  for (int r = 0; r < deposits.count; ++r) {
    const auto i = static_cast<size_t>(r);
    const uint64_t bytes = begin[i + 1] - begin[i];
    copy_block(buffers.out == nullptr ? nullptr : buffers.out + begin[i],
               given(deposits, r, buffers.in, read[i]), bytes);
    read[i] += bytes;
  }
}

void exchange(const Deposits& deposits, std::span<const int32_t> splits, uint64_t bytes_per_row,
              const Buffers& buffers) {
  const auto rows = [&](int from, int to) {
    return static_cast<uint64_t>(splits[static_cast<size_t>(from * deposits.count + to)]);
  };
  uint64_t at = 0;
  for (int from = 0; from < deposits.count; ++from) {
    uint64_t skip = 0;
    for (int to = 0; to < deposits.me; ++to) skip += rows(from, to) * bytes_per_row;
    const uint64_t bytes = rows(from, deposits.me) * bytes_per_row;
    const std::byte* const block = from == deposits.me ? buffers.in : deposits.of[from];
    copy_block(buffers.out == nullptr ? nullptr : buffers.out + at, block + skip, bytes);
    at += bytes;
  }
}

}  // namespace hvd::collective::small
