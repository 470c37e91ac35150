// parse.h - numbers and words from text, strictly: the whole text counts, or the Status says
// "expected <what>, got '<text>'". Blanks at both ends are ignored. Pure; any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hvd {

template <typename T>
struct Range {
  T least = std::numeric_limits<T>::lowest();
  T most = std::numeric_limits<T>::max();
};

std::string_view trim(std::string_view text);

Result<int64_t> parse_integer(std::string_view text, Range<int64_t> range = {});
// Finite only; the decimal point is a point in every locale.
Result<double> parse_decimal(std::string_view text, Range<double> range = {});
// "0,2,4": at least one entry, none negative.
Result<std::vector<int>> parse_integer_list(std::string_view text);
// Index of `text` in `choices`; case does not matter. The failure of a misspelled one has a guess.
Result<size_t> parse_choice(std::string_view text, std::span<const std::string_view> choices);

// "" or " of 0 or more" or " from 1 to 8", as the messages above word it.
std::string range_text(Range<int64_t> range);
std::string range_text(Range<double> range);
// "a, b or c"
std::string choices_text(std::span<const std::string_view> choices);

// The same failure with "<who>: " in front.
Status blame(std::string_view who, const Status& failure);

}  // namespace hvd
