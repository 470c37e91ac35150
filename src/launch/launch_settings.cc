#include "launch/launch_settings.h"

#include "base/parse.h"

namespace hvd::launch {
namespace {

constexpr int64_t kMaxSeconds = int64_t{365} * 24 * 3600;
constexpr char kGraceVariable[] = "HOROVOD_TERMINATION_GRACE_SECONDS";
constexpr char kStartTimeoutVariable[] = "HOROVOD_START_TIMEOUT";

}  // namespace

Result<LaunchSettings> read_launch_settings(const EnvironmentList& environment) {
  LaunchSettings settings;
  if (const auto text = get_variable(environment, kGraceVariable)) {
    const auto seconds = parse_decimal(*text, {0, static_cast<double>(kMaxSeconds)});
    if (!seconds) return blame(kGraceVariable, seconds.status());
    settings.termination_grace =
        std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(*seconds));
  }
  if (const auto text = get_variable(environment, kStartTimeoutVariable)) {
    const auto seconds = parse_integer(*text, {1, kMaxSeconds});
    if (!seconds) return blame(kStartTimeoutVariable, seconds.status());
    settings.start_timeout = std::chrono::seconds(*seconds);
  }
  return settings;
}

}  // namespace hvd::launch
