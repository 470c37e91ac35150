#include "launch/options/yaml_numbers.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.h"

namespace hvd::launch {
namespace {

constexpr int kMinute = 60;  // each part behind a colon counts 1/60 of the one before it

bool consists_of(std::string_view text, std::string_view letters) {
  return !text.empty() && text.find_first_not_of(letters) == std::string_view::npos;
}

std::optional<int64_t> read_digits(std::string_view digits, int base) {
  std::string plain(digits);
  std::erase(plain, '_');
  int64_t value = 0;
  const char* const last = plain.data() + plain.size();
  const auto [end, error] = std::from_chars(plain.data(), last, value, base);
  if (error != std::errc() || end != last) return std::nullopt;
  return value;
}

// "1:30:05"
std::optional<int64_t> read_base_60(std::string_view text) {
  const size_t colon = text.find(':');
  auto value = read_digits(text.substr(0, colon), 10);
  for (size_t at = colon; value && at != std::string_view::npos;) {
    const size_t next = text.find(':', at + 1);
    const std::string_view part = text.substr(at + 1, next - at - 1);
    if (part.size() > 2 || !consists_of(part, "0123456789")) return std::nullopt;
    const auto below = read_digits(part, 10);
    int64_t scaled = 0;
    if (!below || *below >= kMinute || __builtin_mul_overflow(*value, kMinute, &scaled) ||
        __builtin_add_overflow(scaled, *below, &scaled)) {
      return std::nullopt;
    }
    value = scaled;
    at = next;
  }
  return value;
}

// Without a sign.
std::optional<int64_t> read_magnitude(std::string_view text) {
  if (text.starts_with("0b") && consists_of(text.substr(2), "01_"))
    return read_digits(text.substr(2), 2);
  if (text.starts_with("0x") && consists_of(text.substr(2), "0123456789abcdefABCDEF_"))
    return read_digits(text.substr(2), 16);
  if (text.starts_with('0') && text.size() > 1)
    return consists_of(text, "01234567_") ? read_digits(text, 8) : std::nullopt;
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  return consists_of(text, "0123456789_") ? read_digits(text, 10) : read_base_60(text);
}

}  // namespace

Result<std::string> yaml_number(std::string_view scalar) {
  const bool is_signed = scalar.starts_with('-') || scalar.starts_with('+');
  const std::string_view magnitude = scalar.substr(is_signed ? 1 : 0);
  if (const auto value = read_magnitude(magnitude))
    return concat(scalar.starts_with('-') ? -*value : *value);
  if (magnitude.starts_with('0') && consists_of(magnitude, "0123456789_")) {
    return invalid_argument(concat("expected a number, got '", scalar,
                                   "', which is text in YAML: 0 begins an octal number"));
  }
  return std::string(scalar);
}

}  // namespace hvd::launch
