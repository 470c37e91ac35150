// Sixteen blocks at a time, four in each register of 512 bits.
#include "net/cipher/x86/schedule.h"

namespace hvd::net {
namespace {

#define HVD_WIDE \
  __attribute__((target("avx2,avx512f,avx512bw,avx512vl,aes,pclmul,vaes,vpclmulqdq")))
#define HVD_WIDE_INLINE HVD_WIDE __attribute__((always_inline)) inline

constexpr size_t kFours = kBlocks / 4;

HVD_WIDE_INLINE __m512i four_of(__m128i block) {
  return _mm512_maskz_broadcast_i32x4(static_cast<__mmask16>(-1), block);
}
HVD_WIDE_INLINE __m512i turned_fours(__m512i blocks) {
  return _mm512_shuffle_epi8(
      blocks, four_of(_mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)));
}
HVD_WIDE_INLINE __m512i load_fours(const void* at) { return _mm512_loadu_si512(at); }

HVD_WIDE_INLINE __m128i all_quarters(__m512i value) {
  return both_halves(
      _mm256_xor_si256(_mm512_maskz_extracti64x4_epi64(static_cast<__mmask8>(-1), value, 0),
                       _mm512_maskz_extracti64x4_epi64(static_cast<__mmask8>(-1), value, 1)));
}

HVD_WIDE_INLINE __m128i hashed_chunk(__m128i hash, const Schedule& keys, const __m512i* fours) {
  __m512i low = _mm512_setzero_si512(), middle = low, high = low;
  __m512i more = _mm512_zextsi128_si512(hash);
  for (size_t i = 0; i < kFours; ++i) {
    const __m512i a = _mm512_xor_si512(turned_fours(fours[i]), more);
    const __m512i a_sum = _mm512_xor_si512(
        a, _mm512_maskz_shuffle_epi32(static_cast<__mmask16>(-1), a, _MM_PERM_BADC));
    const __m512i power = load_fours(keys.powers + 4 * i);
    low = _mm512_xor_si512(low, _mm512_clmulepi64_epi128(a, power, 0x00));
    high = _mm512_xor_si512(high, _mm512_clmulepi64_epi128(a, power, 0x11));
    middle = _mm512_xor_si512(middle,
                              _mm512_clmulepi64_epi128(a_sum, load_fours(keys.sums + 4 * i), 0x00));
    more = _mm512_setzero_si512();
  }
  return reduced_parts(all_quarters(low), all_quarters(middle), all_quarters(high));
}

// Sealing hashes a chunk while the next one is encrypted, so that neither waits for the other.
template <bool kSeals>
HVD_WIDE size_t wide_chunks(const Schedule& keys, __m256i& next_counter, __m128i& whole_hash,
                            const uint8_t* in, size_t count, uint8_t* out) {
  const __m512i four = four_of(_mm_set_epi32(0, 0, 0, 4));
  __m512i rounds[kRounds + 1];
  for (int r = 0; r <= kRounds; ++r) rounds[r] = four_of(_mm256_castsi256_si128(keys.rounds[r]));
  __m512i counter =
      _mm512_add_epi32(four_of(_mm256_castsi256_si128(next_counter)),
                       _mm512_set_epi32(0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0));
  __m128i hash = whole_hash;
  __m512i hashes[kFours] = {};  // what the hash takes next
  size_t at = 0;
  for (; at + kChunk <= count; at += kChunk) {
    __m512i stream[kFours];
    for (size_t i = 0; i < kFours; ++i) {
      stream[i] = _mm512_xor_si512(turned_fours(counter), rounds[0]);
      counter = _mm512_add_epi32(counter, four);
    }
    for (int r = 1; r < kRounds; ++r) {
      for (size_t i = 0; i < kFours; ++i) stream[i] = _mm512_aesenc_epi128(stream[i], rounds[r]);
    }
    if (kSeals && at > 0) hash = hashed_chunk(hash, keys, hashes);
    for (size_t i = 0; i < kFours; ++i) {
      stream[i] = _mm512_aesenclast_epi128(stream[i], rounds[kRounds]);
      const __m512i given = load_fours(in + at + 64 * i);
      const __m512i made = _mm512_xor_si512(given, stream[i]);
      _mm512_storeu_si512(out + at + 64 * i, made);
      hashes[i] = kSeals ? made : given;
    }
    if (!kSeals) hash = hashed_chunk(hash, keys, hashes);
  }
  if (kSeals && at > 0) hash = hashed_chunk(hash, keys, hashes);
  next_counter = _mm512_maskz_extracti64x4_epi64(static_cast<__mmask8>(-1), counter, 0);
  whole_hash = hash;
  return at;
}

}  // namespace

// The other instructions are there, or nobody would ask.
ChunkLoops wide_chunk_loops() {
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl"))
    return {nullptr, nullptr};
  return {wide_chunks<true>, wide_chunks<false>};
}

}  // namespace hvd::net
