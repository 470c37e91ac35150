// packing.h - fixed-width numbers and counted texts in little-endian bytes: the form of everything
// that travels before a job has come together. Pure; any thread.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace hvd::net {

template <std::integral T>
void put(std::string& out, T value) {
  auto bits = static_cast<std::make_unsigned_t<T>>(value);
  for (size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<char>(bits & 0xff));
    if constexpr (sizeof(T) > 1) bits = static_cast<decltype(bits)>(bits >> 8);
  }
}

// A text with its length (32 bits) in front.
inline void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<uint32_t>(text.size()));
  out += text;
}

// Reads what put wrote. Too few bytes: zeros and empty texts from there on, and is_good() is false;
// so a reader looks once, at the end. Nothing is allocated for bytes that are not there.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}

  template <std::integral T>
  T get() {
    std::make_unsigned_t<T> bits = 0;
    const std::string_view from = take(sizeof(T));
    for (size_t i = from.size(); i-- > 0;) {
      bits = static_cast<decltype(bits)>(uint64_t{bits} << 8 | static_cast<uint8_t>(from[i]));
    }
    return static_cast<T>(bits);
  }
  std::string_view get_text() { return take(get<uint32_t>()); }

  // All that has not been read.
  std::string_view rest() const { return bytes_; }

  bool is_good() const { return good_; }
  // Everything was read, and there was enough of it.
  bool is_complete() const { return good_ && bytes_.empty(); }

 private:
  std::string_view take(size_t count) {
    if (count > bytes_.size()) {
      good_ = false;
      bytes_ = {};
      return {};
    }
    const std::string_view out = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return out;
  }

  std::string_view bytes_;
  bool good_ = true;
};

}  // namespace hvd::net
