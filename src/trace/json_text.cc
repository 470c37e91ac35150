#include "trace/json_text.h"

#include <cstddef>
#include <cstdint>

namespace hvd::trace {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool is_continuation(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

// Length of the valid UTF-8 sequence at the front of `text`; 0 when there is none. The second byte
// is bound more tightly where the first alone would allow overlong forms, surrogates or values
// above U+10FFFF.
size_t sequence_bytes(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[i])) return 0;
  }
  const auto second = static_cast<uint8_t>(text[1]);
  const bool bad = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                   (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
  return bad ? 0 : length;
}

void append_ascii(std::string& out, char c) {
  constexpr char kHex[] = "0123456789abcdef";
  if (c == '"' || c == '\\') {
    out += '\\';
    out += c;
  } else if (static_cast<uint8_t>(c) < 0x20 || c == 0x7F) {
    out += "\\u00";
    out += kHex[static_cast<uint8_t>(c) >> 4];
    out += kHex[static_cast<uint8_t>(c) & 15];
  } else {
    out += c;
  }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const size_t length = sequence_bytes(text);
    if (length == 0) {
      out += kReplacement;
    } else if (length == 1) {
      append_ascii(out, text[0]);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

}  // namespace hvd::trace
