#include "launch/options/launch_settings.h"

#include "base/parse.h"

namespace hvd::launch {
namespace {

constexpr int64_t kMaxSeconds = int64_t{365} * 24 * 3600;
constexpr double kLeastDiscoveryPeriod = 0.01;  // a script is a process

Status read_seconds(const EnvironmentList& environment, const char* name,
                    std::optional<std::chrono::seconds>& out) {
  const auto text = get_variable(environment, name);
  if (!text) return Status::ok();
  const auto seconds = parse_integer(*text, {1, kMaxSeconds});
  if (!seconds) return blame(name, seconds.status());
  out = std::chrono::seconds(*seconds);
  return Status::ok();
}

Status read_span(const EnvironmentList& environment, const char* name, Nanoseconds& out,
                 double least = 0) {
  const auto text = get_variable(environment, name);
  if (!text) return Status::ok();
  const auto seconds = parse_decimal(*text, {least, static_cast<double>(kMaxSeconds)});
  if (!seconds) return blame(name, seconds.status());
  out = std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(*seconds));
  return Status::ok();
}

}  // namespace

Result<LaunchSettings> read_launch_settings(const EnvironmentList& environment) {
  LaunchSettings settings;
  HVD_TRY(read_span(environment, "HOROVOD_TERMINATION_GRACE_SECONDS", settings.termination_grace));
  HVD_TRY(read_span(environment, "HOROVOD_ELASTIC_READY_SECONDS", settings.elastic_ready_time));
  HVD_TRY(read_span(environment, "HOROVOD_ELASTIC_DISCOVERY_SECONDS", settings.discovery_period,
                    kLeastDiscoveryPeriod));
  HVD_TRY(read_seconds(environment, "HOROVOD_START_TIMEOUT", settings.start_timeout));
  HVD_TRY(read_seconds(environment, "HOROVOD_ELASTIC_TIMEOUT", settings.elastic_timeout));
  settings.remote_executable =
      get_variable(environment, "HOROVOD_REMOTE_EXECUTABLE").value_or(std::string());
  return settings;
}

}  // namespace hvd::launch
