// copy_loop.h - copies between private memory and lines that another core touched last.
// Internal linkage (see half.h). Pure; any thread.
#pragma once

#include "reduce/kernels.h"
#include "reduce/vector.h"

namespace hvd {
namespace {

// kBytes in registers. Vectors are moved one by one: as a whole they would go through the stack.
template <class Isa, int kBytes>
struct Chunk {
  static constexpr int kPartBytes = kBytes < Isa::kVectorBytes ? kBytes : Isa::kVectorBytes;
  static constexpr int kParts = kBytes / kPartBytes;
  using Part = typename VectorOf<uint8_t, kPartBytes>::type;
  Part parts[kParts];

  [[gnu::always_inline]] static Chunk load(const char* src) {
    Chunk chunk;
    for (int p = 0; p < kParts; ++p) {
      chunk.parts[p] = load_as<Part>(src + p * kPartBytes);
    }
    return chunk;
  }
  [[gnu::always_inline]] void store(char* dst) const {
    for (int p = 0; p < kParts; ++p) {
      store_as(dst + p * kPartBytes, parts[p]);
    }
  }
  // `dst` is aligned to lines if the data passes by the caches.
  template <Reuse kReuse>
  [[gnu::always_inline]] void store_for(char* dst) const {
    if constexpr (kReuse == Reuse::kSoon) return store(dst);
    for (int p = 0; p < kParts; ++p) Isa::stream(dst + p * kPartBytes, parts[p]);
  }
};

// Copies between kBytes and 2 * kBytes: the first and the last kBytes, which may overlap.
template <class Isa, int kBytes>
[[gnu::always_inline]] inline void copy_ends(char* dst, const char* src, size_t bytes) {
  using Piece = Chunk<Isa, kBytes>;
  const size_t last = bytes - kBytes;
  const Piece head = Piece::load(src);
  const Piece tail = Piece::load(src + last);
  head.store(dst);
  tail.store(dst + last);
}

template <class Isa>
[[gnu::always_inline]] inline void copy_small(char* dst, const char* src, size_t bytes) {
  if (bytes >= 16) {
    if (bytes <= 32) return copy_ends<Isa, 16>(dst, src, bytes);
    if (bytes <= 64) return copy_ends<Isa, 32>(dst, src, bytes);
    return copy_ends<Isa, 64>(dst, src, bytes);
  }
  if (bytes >= 8) return copy_ends<Isa, 8>(dst, src, bytes);
  if (bytes >= 4) return copy_ends<Isa, 4>(dst, src, bytes);
  if (bytes >= 2) return copy_ends<Isa, 2>(dst, src, bytes);
  if (bytes == 1) *dst = *src;
}

// `shared` is the side whose lines come from another core: dst or src.
template <class Isa>
[[gnu::always_inline]] inline void copy_shared(char* dst, const char* src, const char* shared,
                                               size_t bytes) {
  constexpr size_t kStep = 2 * kLineBytes;
  using Piece = Chunk<Isa, kStep>;
  if (bytes <= kStep) return copy_small<Isa>(dst, src, bytes);

  const size_t last = bytes - kStep;  // as in reduce_loop.h, the last step ends with the data
  // The first line goes as it lies; from then on stores are aligned and do not straddle lines.
  Chunk<Isa, kLineBytes>::load(src).store(dst);
  size_t at = kLineBytes - reinterpret_cast<uintptr_t>(dst) % kLineBytes;
  if (last > kFetchAheadBytes) {
    for (; at < last - kFetchAheadBytes; at += kStep) {
      fetch_for_write(shared + at + kFetchAheadBytes);
      fetch_for_write(shared + at + kFetchAheadBytes + kLineBytes);
      Piece::load(src + at).store(dst + at);
    }
  }
  for (; at < last; at += kStep) Piece::load(src + at).store(dst + at);
  copy_ends<Isa, kLineBytes>(dst + last, src + last, kStep);
}

// Between private buffers, or from a shared one whose lines the owner will not miss.
template <class Isa, Reuse kReuse>
[[gnu::always_inline]] inline void copy_private(char* dst, const char* src, size_t bytes) {
  constexpr size_t kStep = 2 * kLineBytes;
  if (bytes <= kStep) return copy_small<Isa>(dst, src, bytes);

  const size_t last = bytes - kStep;
  Chunk<Isa, kLineBytes>::load(src).store(dst);
  size_t at = kLineBytes - reinterpret_cast<uintptr_t>(dst) % kLineBytes;
  for (; at < last; at += kStep) {
    Chunk<Isa, kStep>::load(src + at).template store_for<kReuse>(dst + at);
  }
  copy_ends<Isa, kLineBytes>(dst + last, src + last, kStep);
  if constexpr (kReuse == Reuse::kLate) Isa::finish_streams();
}

// To a shared buffer and to a private one: the source is read once.
template <class Isa, Reuse kReuse>
[[gnu::always_inline]] inline void copy_both(char* shared, char* own, const char* src,
                                             size_t bytes) {
  constexpr size_t kStep = 2 * kLineBytes;
  using Piece = Chunk<Isa, kStep>;
  if (bytes <= kStep) {
    copy_small<Isa>(shared, src, bytes);
    return copy_small<Isa>(own, src, bytes);
  }

  const size_t last = bytes - kStep;
  const auto first = Chunk<Isa, kLineBytes>::load(src);
  first.store(shared);
  first.store(own);
  size_t at = kLineBytes - reinterpret_cast<uintptr_t>(own) % kLineBytes;
  const size_t fetched_end = last > kFetchAheadBytes ? last - kFetchAheadBytes : 0;
  for (; at < last; at += kStep) {
    if (at < fetched_end) {
      fetch_for_write(shared + at + kFetchAheadBytes);
      fetch_for_write(shared + at + kFetchAheadBytes + kLineBytes);
    }
    const Piece piece = Piece::load(src + at);
    piece.store(shared + at);
    piece.template store_for<kReuse>(own + at);
  }
  copy_ends<Isa, kLineBytes>(shared + last, src + last, kStep);
  copy_ends<Isa, kLineBytes>(own + last, src + last, kStep);
  if constexpr (kReuse == Reuse::kLate) Isa::finish_streams();
}

}  // namespace
}  // namespace hvd
