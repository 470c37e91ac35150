#include "base/parse.h"

#include <algorithm>
#include <charconv>

#include "base/near_word.h"
#include "base/text.h"

namespace hvd {
namespace {

// Values are quoted in messages; a pasted file should not fill the screen.
constexpr size_t kMaxQuotedBytes = 120;

Status expected(std::string_view what, std::string_view got) {
  const bool cut = got.size() > kMaxQuotedBytes;
  return invalid_argument(
      concat("expected ", what, ", got '", got.substr(0, kMaxQuotedBytes), cut ? "...'" : "'"));
}

bool same_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

// from_chars takes no plus sign; strtol, which users know, does.
std::string_view without_plus(std::string_view text) {
  const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-' && text[1] != '+';
  return plus ? text.substr(1) : text;
}

template <typename T>
std::string words_for(Range<T> range) {
  const bool from_below = range.least == std::numeric_limits<T>::lowest();
  const bool to_above = range.most == std::numeric_limits<T>::max();
  if (from_below && to_above) return "";
  if (to_above) return concat(" of ", range.least, " or more");
  if (from_below) return concat(" of ", range.most, " or less");
  return concat(" from ", range.least, " to ", range.most);
}

template <typename T>
Result<T> parse_number(std::string_view text, Range<T> range, std::string_view noun) {
  const std::string_view digits = without_plus(trim(text));
  T value{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::invalid_argument || end != digits.data() + digits.size()) {
    return expected(noun, text);
  }
  const bool in_range = error == std::errc() && value >= range.least && value <= range.most;
  if (!in_range) return expected(concat(noun, words_for(range)), text);
  return value;
}

}  // namespace

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

Result<int64_t> parse_integer(std::string_view text, Range<int64_t> range) {
  return parse_number(text, range, "an integer");
}

Result<double> parse_decimal(std::string_view text, Range<double> range) {
  return parse_number(text, range, "a number");  // inf and nan lie in no range
}

Result<std::vector<int>> parse_integer_list(std::string_view text) {
  std::vector<int> values;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const auto value =
        parse_integer(text.substr(begin, comma - begin), {0, std::numeric_limits<int>::max()});
    if (!value) return expected("integers of 0 or more separated by commas", text);
    values.push_back(static_cast<int>(value.value()));
    begin = comma + 1;
  }
  return values;
}

Result<size_t> parse_choice(std::string_view text, std::span<const std::string_view> choices) {
  for (size_t i = 0; i < choices.size(); ++i) {
    if (same_ignoring_case(trim(text), choices[i])) return i;
  }
  const Status unknown = expected(choices_text(choices), text);
  return Status(unknown.code(), concat(unknown.message(), near_word_text(trim(text), choices)));
}

std::string range_text(Range<int64_t> range) { return words_for(range); }
std::string range_text(Range<double> range) { return words_for(range); }

std::string choices_text(std::span<const std::string_view> choices) {
  if (choices.empty()) return "";
  if (choices.size() == 1) return std::string(choices[0]);
  return concat(join_text(choices.first(choices.size() - 1)), " or ", choices.back());
}

Status blame(std::string_view who, const Status& failure) {
  return {failure.code(), concat(who, ": ", failure.message())};
}

}  // namespace hvd
