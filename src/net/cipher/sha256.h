// sha256.h - SHA-256 (FIPS 180-4). Our own, because the library needs nothing but the C library at
// run time. A few hundred bytes per connection pass through it; it is not for bulk data. Any
// thread; one object belongs to one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hvd::net {

using Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void update(std::span<const uint8_t> bytes);
  // Ends this object's work: no update after it.
  Digest finish();

 private:
  void compress(const uint8_t* block);

  std::array<uint32_t, 8> state_;
  std::array<uint8_t, 64> block_{};
  size_t used_ = 0;
  uint64_t total_bytes_ = 0;
};

Digest sha256(std::span<const uint8_t> bytes);

}  // namespace hvd::net
