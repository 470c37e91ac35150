// Sixteen blocks of 16 bytes at a time, two in each register.
#include <cpuid.h>

#include <algorithm>
#include <cstring>

#include "net/cipher/aes_gcm.h"
#include "net/cipher/wipe.h"
#include "net/cipher/x86/schedule.h"

namespace hvd::net {
namespace {

// ---- the hash

// A product that is not reduced yet; in both halves of each register.
struct Product {
  __m256i low, middle, high;
};

// Three products of half the width instead of four (Karatsuba): `middle` has low and high in it.
HVD_VECTOR_INLINE void add_product(Product& sum, __m256i a, __m256i b, __m256i b_sum) {
  const __m256i a_sum = _mm256_xor_si256(a, _mm256_shuffle_epi32(a, 0x4e));
  sum.low = _mm256_xor_si256(sum.low, _mm256_clmulepi64_epi128(a, b, 0x00));
  sum.high = _mm256_xor_si256(sum.high, _mm256_clmulepi64_epi128(a, b, 0x11));
  sum.middle = _mm256_xor_si256(sum.middle, _mm256_clmulepi64_epi128(a_sum, b_sum, 0x00));
}

HVD_VECTOR_INLINE __m128i reduced(const Product& sum) {
  return reduced_parts(both_halves(sum.low), both_halves(sum.middle), both_halves(sum.high));
}

HVD_VECTOR_INLINE __m128i product_of(__m128i a, __m128i b) {
  Product sum{_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
  const __m128i b_sum = _mm_xor_si128(b, _mm_shuffle_epi32(b, 0x4e));
  add_product(sum, _mm256_zextsi128_si256(a), _mm256_zextsi128_si256(b),
              _mm256_zextsi128_si256(b_sum));
  return reduced(sum);
}

// Takes `count` pairs of blocks into the hash; the power `first` belongs to the first of them.
HVD_VECTOR_INLINE __m128i hashed(__m128i hash, const Schedule& keys, size_t first,
                                 const uint8_t* pairs, size_t count) {
  Product sum{_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
  __m256i more = _mm256_zextsi128_si256(hash);
  for (size_t i = 0; i < count; ++i) {
    const size_t at = first + 2 * i;
    add_product(sum, _mm256_xor_si256(turned(load_pair(pairs + 32 * i)), more),
                load_pair(keys.powers + at), load_pair(keys.sums + at));
    more = _mm256_setzero_si256();
  }
  return reduced(sum);
}

HVD_VECTOR_INLINE __m128i hashed_block(__m128i hash, const Schedule& keys, __m128i block) {
  return product_of(_mm_xor_si128(hash, block), keys.powers[kBlocks - 1]);
}

// ---- the cipher

HVD_VECTOR_INLINE __m128i encrypted(const Schedule& keys, __m128i block) {
  block = _mm_xor_si128(block, _mm256_castsi256_si128(keys.rounds[0]));
  for (int r = 1; r < kRounds; ++r)
    block = _mm_aesenc_si128(block, _mm256_castsi256_si128(keys.rounds[r]));
  return _mm_aesenclast_si128(block, _mm256_castsi256_si128(keys.rounds[kRounds]));
}

// The key stream of the sixteen blocks from `counter` on (turned round, in both halves, the second
// one more), which it moves on.
HVD_VECTOR_INLINE void key_stream(const Schedule& keys, __m256i& counter, __m256i* stream) {
  const __m256i two = _mm256_set_epi32(0, 0, 0, 2, 0, 0, 0, 2);
  for (size_t i = 0; i < kPairs; ++i) {
    stream[i] = _mm256_xor_si256(turned(counter), keys.rounds[0]);
    counter = _mm256_add_epi32(counter, two);
  }
  for (int r = 1; r < kRounds; ++r) {
    for (size_t i = 0; i < kPairs; ++i) stream[i] = _mm256_aesenc_epi128(stream[i], keys.rounds[r]);
  }
  for (size_t i = 0; i < kPairs; ++i)
    stream[i] = _mm256_aesenclast_epi128(stream[i], keys.rounds[kRounds]);
}

template <int kConstant>
HVD_VECTOR_INLINE __m128i next_round_key(__m128i key) {
  const __m128i mixed = _mm_shuffle_epi32(_mm_aeskeygenassist_si128(key, kConstant), 0xff);
  key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
  key = _mm_xor_si128(key, _mm_slli_si128(key, 8));
  return _mm_xor_si128(key, mixed);
}

HVD_VECTOR void expand(const GcmKey& key, Schedule& keys) {
  __m128i round[kRounds + 1] = {load(key.data())};
  round[1] = next_round_key<0x01>(round[0]);
  round[2] = next_round_key<0x02>(round[1]);
  round[3] = next_round_key<0x04>(round[2]);
  round[4] = next_round_key<0x08>(round[3]);
  round[5] = next_round_key<0x10>(round[4]);
  round[6] = next_round_key<0x20>(round[5]);
  round[7] = next_round_key<0x40>(round[6]);
  round[8] = next_round_key<0x80>(round[7]);
  round[9] = next_round_key<0x1b>(round[8]);
  round[10] = next_round_key<0x36>(round[9]);
  for (int r = 0; r <= kRounds; ++r) keys.rounds[r] = _mm256_broadcastsi128_si256(round[r]);

  // The hash key times x: one place to the left, and the polynomial where a bit fell out.
  const __m128i hash_key = turned(encrypted(keys, _mm_setzero_si128()));
  const __m128i carries = _mm_srli_epi64(hash_key, 63);
  const __m128i fell_out = _mm_sub_epi64(_mm_setzero_si128(), _mm_unpackhi_epi64(carries, carries));
  const __m128i polynomial = _mm_set_epi64x(static_cast<long long>(0xc200000000000000), 1);
  const __m128i first =
      _mm_xor_si128(_mm_or_si128(_mm_slli_epi64(hash_key, 1), _mm_slli_si128(carries, 8)),
                    _mm_and_si128(fell_out, polynomial));
  keys.powers[kBlocks] = _mm_setzero_si128();
  keys.powers[kBlocks - 1] = first;
  for (size_t i = kBlocks - 1; i > 0; --i) keys.powers[i - 1] = product_of(keys.powers[i], first);
  for (size_t i = 0; i <= kBlocks; ++i)
    keys.sums[i] = _mm_xor_si128(keys.powers[i], _mm_shuffle_epi32(keys.powers[i], 0x4e));
}

// ---- records

enum class Way { kSeal, kOpen };

template <Way kWay>
HVD_VECTOR size_t chunks(const Schedule& keys, __m256i& next_counter, __m128i& whole_hash,
                         const uint8_t* in, size_t count, uint8_t* out) {
  __m256i counter = next_counter;
  __m128i hash = whole_hash;
  size_t at = 0;
  for (; at + kChunk <= count; at += kChunk) {
    __m256i stream[kPairs];
    key_stream(keys, counter, stream);
    if (kWay == Way::kOpen) hash = hashed(hash, keys, 0, in + at, kPairs);
    for (size_t i = 0; i < kPairs; ++i) {
      const __m256i made = _mm256_xor_si256(load_pair(in + at + 32 * i), stream[i]);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + at + 32 * i), made);
    }
    if (kWay == Way::kSeal) hash = hashed(hash, keys, 0, out + at, kPairs);
  }
  next_counter = counter;
  whole_hash = hash;
  return at;
}

constexpr ChunkLoops kNarrowLoops{chunks<Way::kSeal>, chunks<Way::kOpen>};

// What is left of a record behind its whole chunks: less than a chunk, and the last byte.
struct Tail {
  alignas(32) uint8_t bytes[kChunk];
  size_t count;
};

class VectorAesGcm final : public AesGcm {
 public:
  VectorAesGcm(const GcmKey& key, const ChunkLoops& loops) : loops_(loops) { expand(key, keys_); }
  ~VectorAesGcm() override { wipe({reinterpret_cast<uint8_t*>(&keys_), sizeof keys_}); }

  HVD_VECTOR bool seal(const GcmNonce& nonce, std::span<const uint8_t> header,
                       std::span<const uint8_t> bytes, uint8_t last, uint8_t* out) override {
    Pass pass = begin(nonce, header);
    const size_t whole =
        loops_.seal(keys_, pass.counter, pass.hash, bytes.data(), bytes.size(), out);
    Tail tail;
    tail.count = bytes.size() - whole + 1;
    std::copy(bytes.begin() + static_cast<ptrdiff_t>(whole), bytes.end(), tail.bytes);
    tail.bytes[tail.count - 1] = last;
    finish_tail<Way::kSeal>(pass, tail);
    std::memcpy(out + whole, tail.bytes, tail.count);
    const __m128i tag = tag_of(pass, header.size(), bytes.size() + 1);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + bytes.size() + 1), tag);
    return true;
  }

  HVD_VECTOR bool open(const GcmNonce& nonce, std::span<const uint8_t> header,
                       std::span<const uint8_t> sealed, uint8_t* out, uint8_t& last) override {
    const size_t count = sealed.size() - kMoreBytes;
    const __m128i sent = load(sealed.data() + count + 1);
    Pass pass = begin(nonce, header);
    const size_t whole = loops_.open(keys_, pass.counter, pass.hash, sealed.data(), count, out);
    Tail tail;
    tail.count = count - whole + 1;
    std::memcpy(tail.bytes, sealed.data() + whole, tail.count);
    finish_tail<Way::kOpen>(pass, tail);
    const __m128i difference = _mm_xor_si128(tag_of(pass, header.size(), count + 1), sent);
    if (_mm_testz_si128(difference, difference) == 0) {
      wipe(tail.bytes);
      wipe({out, count});
      return false;
    }
    if (tail.count > 1) std::memcpy(out + whole, tail.bytes, tail.count - 1);
    last = tail.bytes[tail.count - 1];
    return true;
  }

 private:
  struct Pass {
    __m256i counter;  // of the next blocks
    __m128i hash;
    __m128i mask;  // of the tag
  };

  HVD_VECTOR_INLINE Pass begin(const GcmNonce& nonce, std::span<const uint8_t> header) const {
    alignas(16) uint8_t first[kBlock] = {};
    std::memcpy(first, nonce.data(), nonce.size());
    first[kBlock - 1] = 1;
    const __m128i start = load(first);
    Pass pass{_mm256_add_epi32(_mm256_broadcastsi128_si256(turned(start)),
                               _mm256_set_epi32(0, 0, 0, 2, 0, 0, 0, 1)),
              _mm_setzero_si128(), encrypted(keys_, start)};
    for (size_t at = 0; at < header.size(); at += kBlock) {
      alignas(16) uint8_t block[kBlock] = {};
      std::memcpy(block, header.data() + at, std::min(kBlock, header.size() - at));
      pass.hash = hashed_block(pass.hash, keys_, turned(load(block)));
    }
    return pass;
  }

  template <Way kWay>
  HVD_VECTOR void finish_tail(Pass& pass, Tail& tail) const {
    __m256i stream[kPairs];
    key_stream(keys_, pass.counter, stream);
    const size_t blocks = (tail.count + kBlock - 1) / kBlock, pairs = (blocks + 1) / 2;
    const size_t first = kBlocks - blocks, more = 32 * pairs - tail.count;
    // What is behind the end counts as zeros in the hash.
    std::memset(tail.bytes + tail.count, 0, more);
    if (kWay == Way::kOpen) pass.hash = hashed(pass.hash, keys_, first, tail.bytes, pairs);
    for (size_t i = 0; i < pairs; ++i) {
      auto* const at = reinterpret_cast<__m256i*>(tail.bytes) + i;
      *at = _mm256_xor_si256(*at, stream[i]);
    }
    if (kWay == Way::kOpen) return;
    std::memset(tail.bytes + tail.count, 0, more);
    pass.hash = hashed(pass.hash, keys_, first, tail.bytes, pairs);
  }

  HVD_VECTOR_INLINE __m128i tag_of(const Pass& pass, size_t header_bytes, size_t bytes) const {
    const __m128i lengths =
        _mm_set_epi64x(static_cast<long long>(header_bytes * 8), static_cast<long long>(bytes * 8));
    return _mm_xor_si128(turned(hashed_block(pass.hash, keys_, lengths)), pass.mask);
  }

  Schedule keys_;
  const ChunkLoops loops_;
};

// __builtin_cpu_supports of older compilers does not know all of them. That the system saves the
// wide registers is part of its answer about "avx2".
bool has_vector_aes() {
  constexpr unsigned kVaes = 1u << 9, kVpclmulqdq = 1u << 10;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("aes") &&
         __builtin_cpu_supports("pclmul") && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 &&
         (ecx & kVaes) != 0 && (ecx & kVpclmulqdq) != 0;
}

}  // namespace

std::unique_ptr<AesGcm> make_vector_aes_gcm(const GcmKey& key, GcmVectors vectors) {
  static const bool has = has_vector_aes();
  if (!has) return nullptr;
  static const ChunkLoops wide = wide_chunk_loops();
  const bool has_wide = wide.seal != nullptr;
  if (!has_wide && vectors == GcmVectors::k512Bits) return nullptr;
  return std::make_unique<VectorAesGcm>(
      key, has_wide && vectors != GcmVectors::k256Bits ? wide : kNarrowLoops);
}

}  // namespace hvd::net
