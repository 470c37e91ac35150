#include "net/keys/hmac.h"

#include <algorithm>
#include <array>

namespace hvd::net {

Digest hmac_sha256(std::span<const uint8_t> key,
                   std::initializer_list<std::span<const uint8_t>> parts) {
  std::array<uint8_t, 64> inner_pad{}, outer_pad{};
  if (key.size() > inner_pad.size()) {
    const Digest short_key = sha256(key);
    std::copy(short_key.begin(), short_key.end(), inner_pad.begin());
  } else {
    std::copy(key.begin(), key.end(), inner_pad.begin());
  }
  for (size_t i = 0; i < inner_pad.size(); ++i) {
    outer_pad[i] = inner_pad[i] ^ 0x5c;
    inner_pad[i] ^= 0x36;
  }
  Sha256 inner;
  inner.update(inner_pad);
  for (const auto part : parts) inner.update(part);
  const Digest digest = inner.finish();
  Sha256 outer;
  outer.update(outer_pad);
  outer.update(digest);
  wipe(inner_pad);
  wipe(outer_pad);
  return outer.finish();
}

bool equal_in_constant_time(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  if (a.size() != b.size()) return false;
  volatile uint8_t difference = 0;  // keeps the compiler from leaving early
  for (size_t i = 0; i < a.size(); ++i) difference = difference | (a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace hvd::net
