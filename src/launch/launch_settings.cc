#include "launch/launch_settings.h"

#include <charconv>

#include "base/text.h"
#include "launch/numbers.h"

namespace hvd::launch {
namespace {

constexpr int64_t kMaxSeconds = int64_t{365} * 24 * 3600;
constexpr char kGraceVariable[] = "HOROVOD_TERMINATION_GRACE_SECONDS";
constexpr char kStartTimeoutVariable[] = "HOROVOD_START_TIMEOUT";

Result<Nanoseconds> parse_span(const std::string& text, const char* variable) {
  double seconds = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, seconds);
  const bool in_range = seconds >= 0 && seconds <= static_cast<double>(kMaxSeconds);
  if (parsed.ec != std::errc() || parsed.ptr != end || !in_range) {
    return invalid_argument(
        concat(variable, ": expected seconds from 0 to ", kMaxSeconds, ", got '", text, "'"));
  }
  return std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(seconds));
}

}  // namespace

Result<LaunchSettings> read_launch_settings(const EnvironmentList& environment) {
  LaunchSettings settings;
  if (const auto text = get_variable(environment, kGraceVariable)) {
    HVD_TRY_ASSIGN(settings.termination_grace, parse_span(*text, kGraceVariable));
  }
  if (const auto text = get_variable(environment, kStartTimeoutVariable)) {
    HVD_TRY_ASSIGN(const int64_t seconds,
                   parse_whole_number(*text, kStartTimeoutVariable, {1, kMaxSeconds}));
    settings.start_timeout = std::chrono::seconds(seconds);
  }
  return settings;
}

}  // namespace hvd::launch
