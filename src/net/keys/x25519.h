// x25519.h - Diffie-Hellman on Curve25519 (RFC 7748): two processes that can only shout get a
// secret that listeners do not have. Our own, because the library needs nothing but the C library
// at run time (docs/decisions/0018). Takes the same time for all secrets. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "net/keys/key.h"

namespace hvd::net {

inline constexpr size_t kPointBytes = 32;
using Point = std::array<uint8_t, kPointBytes>;

// The function X25519 of RFC 7748, section 5.
Point x25519(std::span<const uint8_t, 32> scalar, std::span<const uint8_t, kPointBytes> point);

// One end of an exchange. The secret is wiped with it.
class KeyPair {
 public:
  static Result<KeyPair> random();

  const Point& public_point() const { return public_; }
  // CORRUPTED for one of the few points that give everybody the same secret (RFC 7748, 6.1).
  Result<Key> shared_secret(std::span<const uint8_t, kPointBytes> other) const;

 private:
  explicit KeyPair(const Key& secret);

  Key secret_;
  Point public_;
};

}  // namespace hvd::net
