#include "launch/plan/json_text.h"

#include <array>

#include "base/text.h"

namespace hvd::launch {
namespace {

std::string unicode_escape(unsigned code) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) text += kDigits[code >> shift & 15U];
  return text;
}

// How many bytes at `at` form one valid character beyond ASCII; 0: none.
size_t utf8_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(at);
  const size_t length = first >= 0xf0 && first <= 0xf4   ? 4
                        : first >= 0xe0 && first <= 0xef ? 3
                        : first >= 0xc2 && first <= 0xdf ? 2
                                                         : 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0U) != 0x80U) return 0;
  }
  const unsigned second = byte(at + 1);
  const bool is_bad = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
  return is_bad ? 0 : length;
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text[i];
    } else if (c == '\n') {
      out += "\\n";
    } else if (c < 0x20 || c == 0x7f) {
      out += unicode_escape(c);
    } else if (c < 0x80) {
      out += text[i];
    } else if (const size_t length = utf8_length(text, i); length > 0) {
      out += text.substr(i, length);
      i += length - 1;
    } else {
      out += unicode_escape(0xdc00U + c);
    }
  }
  return out + '"';
}

std::string json_list(std::span<const std::string> items) {
  return concat("[", join_text(items, ", "), "]");
}

std::string json_strings(std::span<const std::string> texts) {
  std::vector<std::string> items;
  items.reserve(texts.size());
  for (const std::string& text : texts) items.push_back(json_string(text));
  return json_list(items);
}

JsonObject& JsonObject::add(std::string_view key, std::string json) {
  entries_.push_back(concat(json_string(key), ": ", json));
  return *this;
}

std::string JsonObject::text() const { return concat("{", join_text(entries_, ", "), "}"); }

}  // namespace hvd::launch
