// hash.h - a quick 64-bit hash of bytes, the same in every process of a job. Not for untrusted
// tables.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace hvd {

inline uint64_t mix(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a ^ 0x9e3779b97f4a7c15ull) * (b ^ 0xbf58476d1ce4e5b9ull);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t hash_bytes(std::string_view text, uint64_t seed = 0) {
  const char* at = text.data();
  size_t left = text.size();
  uint64_t hash = mix(seed, left);
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    hash = mix(hash, word);
  }
  if (left > 0) {
    uint64_t word = 0;
    std::memcpy(&word, at, left);
    hash = mix(hash, word);
  }
  return hash;
}

}  // namespace hvd
