#include "net/cipher/poly1305.h"

#include <cstring>

#include "net/cipher/wipe.h"

namespace hvd::net {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr uint64_t kMask44 = (uint64_t{1} << 44) - 1, kMask42 = (uint64_t{1} << 42) - 1;

uint64_t word(const uint8_t* at) {
  uint64_t out;
  std::memcpy(&out, at, sizeof out);
  return out;
}

}  // namespace

Poly1305::Poly1305(std::span<const uint8_t, kKeyBytes> key) {
  // The clamp of the RFC, then cut into limbs.
  const uint64_t low = word(key.data()) & 0x0ffffffc0fffffff;
  const uint64_t high = word(key.data() + 8) & 0x0ffffffc0ffffffc;
  r_ = {low & kMask44, (low >> 44 | high << 20) & kMask44, high >> 24};
  pad_ = {word(key.data() + 16), word(key.data() + 24)};
}

Poly1305::~Poly1305() {
  wipe({reinterpret_cast<uint8_t*>(r_.data()), sizeof r_});
  wipe({reinterpret_cast<uint8_t*>(sum_.data()), sizeof sum_});
  wipe({reinterpret_cast<uint8_t*>(pad_.data()), sizeof pad_});
}

// sum = (sum + block + 2^128) * r
void Poly1305::take(const uint8_t* block) {
  const uint64_t low = word(block), high = word(block + 8);
  const uint64_t h0 = sum_[0] + (low & kMask44);
  const uint64_t h1 = sum_[1] + ((low >> 44 | high << 20) & kMask44);
  const uint64_t h2 = sum_[2] + (high >> 24 | uint64_t{1} << 40);
  // What runs over 2^130 comes back times 5; the limbs make that 2^132, so times 20.
  const uint64_t s1 = r_[1] * 20, s2 = r_[2] * 20;
  Wide d0 = Wide{h0} * r_[0] + Wide{h1} * s2 + Wide{h2} * s1;
  Wide d1 = Wide{h0} * r_[1] + Wide{h1} * r_[0] + Wide{h2} * s2;
  Wide d2 = Wide{h0} * r_[2] + Wide{h1} * r_[1] + Wide{h2} * r_[0];
  d1 += static_cast<uint64_t>(d0 >> 44);
  d2 += static_cast<uint64_t>(d1 >> 44);
  sum_[0] = (static_cast<uint64_t>(d0) & kMask44) + static_cast<uint64_t>(d2 >> 42) * 5;
  sum_[1] = (static_cast<uint64_t>(d1) & kMask44) + (sum_[0] >> 44);
  sum_[0] &= kMask44;
  sum_[2] = static_cast<uint64_t>(d2) & kMask42;
}

void Poly1305::update_padded(std::span<const uint8_t> bytes) {
  for (; bytes.size() >= 16; bytes = bytes.subspan(16)) take(bytes.data());
  if (bytes.empty()) return;
  std::array<uint8_t, 16> last{};
  std::memcpy(last.data(), bytes.data(), bytes.size());
  take(last.data());
}

std::array<uint8_t, 16> Poly1305::finish() {
  auto [h0, h1, h2] = sum_;
  for (int i = 0; i < 2; ++i) {  // carries, twice around
    h1 += h0 >> 44, h0 &= kMask44;
    h2 += h1 >> 44, h1 &= kMask44;
    h0 += (h2 >> 42) * 5, h2 &= kMask42;
  }
  h1 += h0 >> 44, h0 &= kMask44;
  // If the sum is 2^130 - 5 or more, take that away; without a branch.
  uint64_t g0 = h0 + 5;
  uint64_t g1 = h1 + (g0 >> 44);
  g0 &= kMask44;
  const uint64_t g2 = h2 + (g1 >> 44) - (uint64_t{1} << 42);
  g1 &= kMask44;
  const uint64_t keep = ~((g2 >> 63) - 1);  // all ones: it was less
  h0 = (h0 & keep) | (g0 & ~keep);
  h1 = (h1 & keep) | (g1 & ~keep);
  h2 = (h2 & keep) | (g2 & ~keep);
  const Wide low = Wide{h0 | h1 << 44} + pad_[0];
  const uint64_t high = (h1 >> 20 | h2 << 24) + pad_[1] + static_cast<uint64_t>(low >> 64);
  const auto low_word = static_cast<uint64_t>(low);
  std::array<uint8_t, 16> out;
  std::memcpy(out.data(), &low_word, 8);
  std::memcpy(out.data() + 8, &high, 8);
  return out;
}

}  // namespace hvd::net
