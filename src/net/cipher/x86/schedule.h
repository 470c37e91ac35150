// schedule.h - what the loops over blocks share: keys, and the reduction of the hash. The hash of
// GCM is taken as that of RFC 8452 (POLYVAL) with the bytes of each block turned round and its key
// multiplied by x: then a product needs no shift, and products are summed up before one reduction.
// No table, no branch and no address depends on a secret.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace hvd::net {

#define HVD_VECTOR __attribute__((target("avx2,aes,pclmul,vaes,vpclmulqdq")))
#define HVD_VECTOR_INLINE HVD_VECTOR __attribute__((always_inline)) inline

inline constexpr size_t kBlock = 16, kBlocks = 16, kPairs = kBlocks / 2, kChunk = kBlock * kBlocks;
inline constexpr int kRounds = 10;

struct Schedule {
  __m256i rounds[kRounds + 1];  // each key twice
  // Powers of the hash key, the highest first, so that any number of blocks finds its own at the
  // end; then a zero, for the half of a pair that is not there.
  __m128i powers[kBlocks + 1];
  __m128i sums[kBlocks + 1];  // of both halves of each power, in both halves
};

HVD_VECTOR_INLINE __m128i turned(__m128i block) {
  return _mm_shuffle_epi8(block,
                          _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}
HVD_VECTOR_INLINE __m256i turned(__m256i blocks) {
  return _mm256_shuffle_epi8(blocks, _mm256_broadcastsi128_si256(_mm_set_epi8(
                                         0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)));
}
HVD_VECTOR_INLINE __m128i load(const void* at) {
  return _mm_loadu_si128(static_cast<const __m128i*>(at));
}
HVD_VECTOR_INLINE __m256i load_pair(const void* at) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(at));
}

HVD_VECTOR_INLINE __m128i both_halves(__m256i pair) {
  return _mm_xor_si128(_mm256_castsi256_si128(pair), _mm256_extracti128_si256(pair, 1));
}

// Divides by x^128 modulo x^128 + x^127 + x^126 + x^121 + 1, 64 bits at a time.
HVD_VECTOR_INLINE __m128i reduced_parts(__m128i low, __m128i middle, __m128i high) {
  const __m128i polynomial = _mm_set_epi64x(0, static_cast<long long>(0xc200000000000000));
  middle = _mm_xor_si128(middle, _mm_xor_si128(low, high));
  low = _mm_xor_si128(low, _mm_slli_si128(middle, 8));
  high = _mm_xor_si128(high, _mm_srli_si128(middle, 8));
  for (int i = 0; i < 2; ++i) {
    const __m128i fold = _mm_clmulepi64_si128(low, polynomial, 0x00);
    low = _mm_xor_si128(_mm_shuffle_epi32(low, 0x4e), fold);
  }
  return _mm_xor_si128(low, high);
}

// All whole chunks of a record: the key stream from `counter` on (turned round; the second half is
// one more) and the hash of what is encrypted, both of which move on. How many bytes they are.
using Chunks = size_t (*)(const Schedule& keys, __m256i& counter, __m128i& hash, const uint8_t* in,
                          size_t count, uint8_t* out);
struct ChunkLoops {
  Chunks seal, open;
};
// With registers of 512 bits. Null: this processor has none.
ChunkLoops wide_chunk_loops();

}  // namespace hvd::net
