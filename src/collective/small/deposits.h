// deposits.h - operations whose payloads all lie on this host: each member combines them by itself.
//
// A deposit holds what one member gives for all tensors of an operation, one after the other; the
// functions take the bytes at one place of every deposit. The member's own deposit is never read:
// its own elements come from the user's buffer, before anything is written there. Nothing waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collective/hosts/layout.h"
#include "collective/numeric.h"

namespace hvd::collective::small {

// Those of the largest operation that may be small: what a member that has joined deposits.
constexpr size_t kMostDepositBytes = 64 << 10;

struct Deposits {
  const std::byte* const* of;  // by member; null: it has joined, and gives zeros
  int count;
  int me;
  // Where members of several hosts share some of them, and so are combined host by host; else null.
  const hosts::HostLayout* hosts;
};

// A user's buffers for one tensor; `out` may be null: not wanted.
struct Buffers {
  const std::byte* in;
  std::byte* out;
};

// out = the reduction of `count` elements that lie `offset` bytes into every deposit.
void reduce(const Deposits& deposits, uint64_t offset, const Numeric& numeric,
            const Buffers& buffers, uint64_t count);

// The same with nothing but the elements in the deposits, unscaled, of members that are all there.
void reduce_plain(const Deposits& deposits, const Numeric& numeric, const Buffers& buffers,
                  uint64_t count);

void adasum(const Deposits& deposits, uint64_t offset, const Numeric& numeric,
            const Buffers& buffers, uint64_t count);

void broadcast(const Deposits& deposits, int root, const Buffers& buffers, uint64_t bytes);

// Member r gives out[begin[r], begin[r + 1]); its bytes lie read[r] bytes into its deposit, which
// is then advanced.
void gather(const Deposits& deposits, std::span<const uint64_t> begin, std::span<uint64_t> read,
            const Buffers& buffers);

// splits[from * count + to]: rows of `bytes_per_row` that one member has for another.
void exchange(const Deposits& deposits, std::span<const int32_t> splits, uint64_t bytes_per_row,
              const Buffers& buffers);

}  // namespace hvd::collective::small
