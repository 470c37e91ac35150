// json_text.h - writes JSON: strings of any bytes, and objects and lists put together as text.
// Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {

// What becomes of a byte that is not part of valid UTF-8; the result is valid JSON in both cases.
enum class BadBytes {
  kReplace,  // U+FFFD, for readers that people use
  kEscape,   // a lone surrogate (\udcXX), as Python decodes it with "surrogateescape": nothing is
             // lost
};

// With quotes; control characters are escaped.
void append_json_string(std::string& out, std::string_view text, BadBytes bad_bytes);

// The same as a value, with kEscape.
std::string json_string(std::string_view text);
std::string json_strings(std::span<const std::string> texts);

// An object, entry by entry; values are JSON already.
class JsonObject {
 public:
  JsonObject& add(std::string_view key, std::string json);
  std::string text() const;  // on one line

 private:
  std::vector<std::string> entries_;
};

std::string json_list(std::span<const std::string> items);  // items are JSON already

}  // namespace hvd
