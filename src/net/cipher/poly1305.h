// poly1305.h - the one-time authenticator of RFC 8439. A key serves one message. One object belongs
// to one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hvd::net {

class Poly1305 {
 public:
  static constexpr size_t kKeyBytes = 32;

  explicit Poly1305(std::span<const uint8_t, kKeyBytes> key);
  ~Poly1305();
  // `bytes` and zeros up to the next multiple of 16.
  void update_padded(std::span<const uint8_t> bytes);
  // Ends this object's work.
  std::array<uint8_t, 16> finish();

 private:
  void take(const uint8_t* block);

  // Numbers modulo 2^130 - 5 in limbs of 44, 44 and 42 bits.
  std::array<uint64_t, 3> r_{}, sum_{};
  std::array<uint64_t, 2> pad_{};
};

}  // namespace hvd::net
