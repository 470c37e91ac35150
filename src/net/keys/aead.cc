#include "net/keys/aead.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "net/cipher/poly1305.h"
#include "net/keys/hmac.h"

namespace hvd::net {
namespace {

static_assert(std::endian::native == std::endian::little, "words are copied as they lie in memory");

constexpr size_t kBlockBytes = 64;
constexpr size_t kLanes = 4;  // blocks at a time

// Four blocks side by side: word w of all of them is one vector.
using Lanes = uint32_t __attribute__((vector_size(4 * kLanes)));
using Words = std::array<Lanes, 16>;

template <int kBits>
Lanes rotate(Lanes value) {
  return value << kBits | value >> (32 - kBits);
}

inline void quarter_round(Words& x, size_t a, size_t b, size_t c, size_t d) {
  x[a] += x[b], x[d] = rotate<16>(x[d] ^ x[a]);
  x[c] += x[d], x[b] = rotate<12>(x[b] ^ x[c]);
  x[a] += x[b], x[d] = rotate<8>(x[d] ^ x[a]);
  x[c] += x[d], x[b] = rotate<7>(x[b] ^ x[c]);
}

class ChaCha20 {
 public:
  ChaCha20(const Key& key, const AeadNonce& nonce) {
    constexpr char kConstant[] = "expand 32-byte k";
    std::memcpy(words_.data(), kConstant, 16);
    std::memcpy(words_.data() + 4, key.bytes().data(), kKeyBytes);
    std::memcpy(words_.data() + 13, nonce.data(), nonce.size());
  }
  ~ChaCha20() {
    wipe({reinterpret_cast<uint8_t*>(words_.data()), sizeof words_});
    wipe(stream_);
  }

  // The stream of blocks `counter` and the three that follow.
  const std::array<uint8_t, kBlockBytes * kLanes>& blocks(uint32_t counter) {
    Words start;
    for (size_t w = 0; w < start.size(); ++w) start[w] = Lanes{} + words_[w];
    start[12] = Lanes{counter, counter + 1, counter + 2, counter + 3};
    Words x = start;
    for (int round = 0; round < 10; ++round) {
      for (size_t i = 0; i < 4; ++i) quarter_round(x, i, 4 + i, 8 + i, 12 + i);
      quarter_round(x, 0, 5, 10, 15);
      quarter_round(x, 1, 6, 11, 12);
      quarter_round(x, 2, 7, 8, 13);
      quarter_round(x, 3, 4, 9, 14);
    }
    for (size_t w = 0; w < x.size(); ++w) {
      const Lanes sum = x[w] + start[w];
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const uint32_t word = sum[lane];
        std::memcpy(stream_.data() + lane * kBlockBytes + w * 4, &word, sizeof word);
      }
    }
    return stream_;
  }

  // Block 0 makes the key of the tag, so bytes start at block 1.
  void apply(std::span<uint8_t> bytes) {
    uint32_t counter = 1;
    while (!bytes.empty()) {
      const auto& stream = blocks(counter);
      const size_t count = std::min(bytes.size(), stream.size());
      for (size_t i = 0; i < count; ++i) bytes[i] ^= stream[i];
      bytes = bytes.subspan(count);
      counter += kLanes;
    }
  }

 private:
  std::array<uint32_t, 16> words_{};
  std::array<uint8_t, kBlockBytes * kLanes> stream_{};
};

Tag tag_of(ChaCha20& cipher, std::span<const uint8_t> header, std::span<const uint8_t> bytes) {
  Poly1305 poly(std::span(cipher.blocks(0)).first<Poly1305::kKeyBytes>());
  poly.update_padded(header);
  poly.update_padded(bytes);
  std::array<uint8_t, 16> lengths;
  const uint64_t header_bytes = header.size(), body_bytes = bytes.size();
  std::memcpy(lengths.data(), &header_bytes, 8);
  std::memcpy(lengths.data() + 8, &body_bytes, 8);
  poly.update_padded(lengths);
  return poly.finish();
}

}  // namespace

Tag seal(const Key& key, const AeadNonce& nonce, std::span<const uint8_t> header,
         std::span<uint8_t> bytes) {
  ChaCha20 cipher(key, nonce);
  cipher.apply(bytes);
  return tag_of(cipher, header, bytes);
}

bool unseal(const Key& key, const AeadNonce& nonce, std::span<const uint8_t> header,
            std::span<uint8_t> bytes, const Tag& tag) {
  ChaCha20 cipher(key, nonce);
  if (!equal_in_constant_time(tag_of(cipher, header, bytes), tag)) return false;
  cipher.apply(bytes);
  return true;
}

}  // namespace hvd::net
