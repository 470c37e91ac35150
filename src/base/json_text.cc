#include "base/json_text.h"

#include <cstdint>

#include "base/text.h"

namespace hvd {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr unsigned kFirstSurrogate = 0xDC00;

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

void append_unicode_escape(std::string& out, unsigned code) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kDigits[code >> shift & 15U];
}

void append_ascii(std::string& out, char c) {
  if (c == '"' || c == '\\') {
    out += '\\';
    out += c;
  } else if (c == '\n') {
    out += "\\n";
  } else if (static_cast<uint8_t>(c) < 0x20 || c == 0x7F) {
    append_unicode_escape(out, static_cast<uint8_t>(c));
  } else {
    out += c;
  }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text, BadBytes bad_bytes) {
  out += '"';
  while (!text.empty()) {
    const size_t length = sequence_bytes(text);
    if (length > 1) {
      out += text.substr(0, length);
    } else if (length == 1) {
      append_ascii(out, text[0]);
    } else if (bad_bytes == BadBytes::kReplace) {
      out += kReplacement;
    } else {
      append_unicode_escape(out, kFirstSurrogate + static_cast<uint8_t>(text[0]));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text, BadBytes::kEscape);
  return out;
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

}  // namespace hvd
