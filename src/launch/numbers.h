// numbers.h - numbers that users type: all of the text, inside a range, or an error that names the
// place. Pure; any thread.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "base/text.h"

namespace hvd::launch {

struct Range {
  int64_t least, most;
};

// `what` is the option or variable that the text was given to.
inline Result<int64_t> parse_whole_number(std::string_view text, std::string_view what,
                                          Range range) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end || value < range.least || value > range.most) {
    return invalid_argument(concat(what, ": expected a whole number from ", range.least, " to ",
                                   range.most, ", got '", text, "'"));
  }
  return value;
}

}  // namespace hvd::launch
