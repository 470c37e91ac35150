// text.h - building messages: concat("rank ", 3, " sent ", "float16").
// Exists because our oldest compilers lack std::format. Any thread.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace hvd {

inline void append_text(std::string& out, std::string_view text) { out += text; }
inline void append_text(std::string& out, char c) { out += c; }
// Constrained, since a plain bool parameter would win over string_view for a string literal.
template <std::same_as<bool> T>
void append_text(std::string& out, T value) {
  out += value ? "true" : "false";
}
template <std::integral T>
requires(!std::same_as<T, char> && !std::same_as<T, bool>) void append_text(std::string& out,
                                                                            T value) {
  char buffer[24];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}
template <std::floating_point T>
void append_text(std::string& out, T value) {
  char buffer[48];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}

template <typename... Parts>
std::string concat(const Parts&... parts) {
  std::string out;
  (append_text(out, parts), ...);
  return out;
}

// "a, b, c" of anything append_text takes; at most `most` items, then " ..."
template <typename Range>
std::string join_text(const Range& items, std::string_view separator = ", ",
                      size_t most = SIZE_MAX) {
  std::string out;
  size_t n = 0;
  for (const auto& item : items) {
    if (n == most) return out + " ...";
    if (n++ > 0) out += separator;
    append_text(out, item);
  }
  return out;
}

}  // namespace hvd
