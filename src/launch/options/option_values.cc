#include "launch/options/option_values.h"

#include <algorithm>

#include "base/parse.h"
#include "base/text.h"

namespace hvd::launch {
namespace {

constexpr int64_t kMaxTimeoutSeconds = int64_t{365} * 24 * 3600;
constexpr int64_t kMaxPort = 65535;
constexpr int64_t kMaxCooldownSeconds = 3600;

// Whether a value that was refused is at least what the option takes.
bool is_of_kind(TunableKind kind, std::string_view value) {
  switch (kind) {
    case TunableKind::kInteger:
    case TunableKind::kMebibytes:
      return parse_integer(value).is_ok();
    case TunableKind::kDecimal:
      return parse_decimal(value).is_ok();
    case TunableKind::kText:
      return true;
    case TunableKind::kSwitch:
    case TunableKind::kLogLevel:
      break;
  }
  return false;
}

}  // namespace

Status OptionReader::refuse_value(Status why) {
  if (values_.is_ok()) values_ = std::move(why);
  return Status::ok();
}

Status OptionReader::read_text(std::string_view spelling, std::string_view what,
                               std::string_view value, std::string& out) {
  if (value.empty()) {
    return refuse_value(invalid_argument(concat(spelling, ": the ", what, " is empty")));
  }
  out = value;
  return Status::ok();
}

Status OptionReader::read_number(std::string_view spelling, std::string_view value,
                                 Range<int64_t> range, std::optional<int32_t>& out) {
  const auto number = parse_integer(value, range);
  if (!number) {
    Status why = blame(spelling, number.status());
    return parse_integer(value).is_ok() ? refuse_value(std::move(why)) : why;
  }
  out = static_cast<int32_t>(*number);
  return Status::ok();
}

Status OptionReader::read_seconds(std::string_view spelling, std::string_view value,
                                  std::optional<std::chrono::seconds>& out) {
  std::optional<int32_t> seconds;
  HVD_TRY(read_number(spelling, value, {1, kMaxTimeoutSeconds}, seconds));
  if (seconds) out = std::chrono::seconds(*seconds);
  return Status::ok();
}

Status OptionReader::apply(const OptionInfo& info, std::string_view spelling,
                           std::span<const std::string_view> values) {
  if (info.visibility == FlagVisibility::kObsolete) {
    options_.warnings.push_back(
        concat(spelling, " is obsolete: use --log-without-timestamp or --log-with-timestamp"));
  }
  if (info.id == OptionId::kBlacklistCooldownRange) return apply_cooldown(spelling, values);
  const std::string_view value = values.empty() ? std::string_view() : values.front();
  if (info.id == OptionId::kTunable) return apply_tunable(info, spelling, value);
  return info.takes_value() ? apply_value(info.id, spelling, value)
                            : apply_switch(info.id, spelling);
}

// Switches.
Status OptionReader::apply_switch(OptionId id, std::string_view spelling) {
  switch (id) {
    case OptionId::kGloo:
      return choose(Controller::kGloo, spelling);
    case OptionId::kMpi:
      return choose(Controller::kMpi, spelling);
    case OptionId::kJsrun:
      return choose(Controller::kJsrun, spelling);
    case OptionId::kPrefixTimestamp:
      options_.prefix_timestamp = true;
      break;
    case OptionId::kVerbose:
      options_.verbose = true;
      break;
    case OptionId::kGpu:
      options_.tries_gpus = true;
      break;
    case OptionId::kDisableCache:
      options_.disable_cache = true;
      break;
    case OptionId::kSshNoHostKeyCheck:
      options_.ssh.host_keys = HostKeyCheck::kNone;
      break;
    case OptionId::kWholeHosts:
      options_.elastic.whole_hosts = true;
      break;
    case OptionId::kTcp:
      options_.mpi.tcp_only = true;
      break;
    case OptionId::kCheckBuild:
      options_.request = Request::kCheckBuild;
      break;
    case OptionId::kPlanJson:
      options_.request = Request::kPlanJson;
      break;
    case OptionId::kParseJson:
      options_.request = Request::kParseJson;
      break;
    case OptionId::kAgent:
      options_.request = Request::kAgent;
      break;
    case OptionId::kDecide:
      options_.request = Request::kDecide;
      break;
    case OptionId::kVersion:
      options_.request = Request::kVersion;
      break;
    case OptionId::kHelp:
      options_.request = Request::kHelp;
      break;
    default:
      break;
  }
  return Status::ok();
}

// Options with a value.
Status OptionReader::apply_value(OptionId id, std::string_view spelling, std::string_view value) {
  ElasticOptions& elastic = options_.elastic;
  switch (id) {
    case OptionId::kNumProc: {
      std::optional<int32_t> count;
      HVD_TRY(read_number(spelling, value, {1, kMaxWorkers}, count));
      options_.num_proc = count.value_or(options_.num_proc);
      return Status::ok();
    }
    case OptionId::kHosts:
      return read_text(spelling, "list of hosts", value, options_.hosts);
    case OptionId::kHostfile:
      return read_text(spelling, "file name", value, options_.hostfile);
    case OptionId::kConfigFile:
      return read_text(spelling, "file name", value, options_.config_file);
    case OptionId::kOutputFilename:
      return read_text(spelling, "directory", value, options_.output_directory);
    case OptionId::kSshIdentityFile:
      return read_text(spelling, "file name", value, options_.ssh.identity_file);
    case OptionId::kHostDiscoveryScript:
      return read_text(spelling, "file name", value, elastic.host_discovery_script);
    case OptionId::kJoin:
      return read_text(spelling, "host and port", value, elastic.join);
    case OptionId::kKeyFile:
      return read_text(spelling, "file name", value, elastic.key_file);
    case OptionId::kElasticLog:
      return read_text(spelling, "file name", value, elastic.log_file);
    case OptionId::kChaos:
      return apply_chaos(spelling, value);
    case OptionId::kMpiArgs:
      options_.mpi.more_arguments = value;
      return Status::ok();
    case OptionId::kBindingArgs:
      options_.mpi.binding_arguments = value;
      return Status::ok();
    case OptionId::kNetworkInterface:
      if (value.find(',') != std::string_view::npos) {
        options_.warnings.push_back(
            concat(spelling, " takes one interface: use --network-interfaces ", value));
      }
      return add_interfaces(spelling, value);
    case OptionId::kNetworkInterfaces:
      return add_interfaces(spelling, value);
    case OptionId::kStartTimeout:
      return read_seconds(spelling, value, options_.start_timeout);
    case OptionId::kElasticTimeout:
      return read_seconds(spelling, value, elastic.timeout);
    case OptionId::kSshPort:
      return read_number(spelling, value, {1, kMaxPort}, options_.ssh.port);
    case OptionId::kMinNumProc:
      return read_number(spelling, value, {1, kMaxWorkers}, elastic.min_num_proc);
    case OptionId::kMaxNumProc:
      return read_number(spelling, value, {1, kMaxWorkers}, elastic.max_num_proc);
    case OptionId::kSlotsPerHost:
      return read_number(spelling, value, {1, kMaxWorkers}, elastic.slots_per_host);
    case OptionId::kResetLimit:
      return read_number(spelling, value, {0, INT32_MAX}, elastic.reset_limit);
    default:
      return Status::ok();
  }
}

Status OptionReader::apply_tunable(const OptionInfo& info, std::string_view spelling,
                                   std::string_view value) {
  if (info.takes_value()) {
    const Status set = options_.tunables.set(*info.tunable, value);
    if (set.is_ok()) return set;
    Status why = blame(spelling, set);
    const bool is_right_kind = is_of_kind(tunable_info(*info.tunable).kind, value);
    return is_right_kind ? refuse_value(std::move(why)) : why;
  }
  const auto before = switch_spellings_.find(*info.tunable);
  if (before != switch_spellings_.end() &&
      options_.tunables.is_on(*info.tunable) != info.turns_on) {
    return invalid_argument(concat(spelling, " contradicts ", before->second));
  }
  switch_spellings_[*info.tunable] = spelling;
  options_.tunables.set_switch(*info.tunable, info.turns_on);
  return Status::ok();
}

// "kill=30s", "kill=0.5,seed=7"
Status OptionReader::apply_chaos(std::string_view spelling, std::string_view value) {
  while (!value.empty()) {
    const size_t comma = std::min(value.find(','), value.size());
    std::string_view item = value.substr(0, comma);
    value.remove_prefix(std::min(comma + 1, value.size()));
    if (item.starts_with("kill=")) {
      item.remove_prefix(5);
      if (item.ends_with('s')) item.remove_suffix(1);
      const auto seconds = parse_decimal(item, {0.01, 86400});
      if (!seconds) return blame(spelling, seconds.status());
      options_.elastic.chaos_kill =
          std::chrono::milliseconds(static_cast<int64_t>(*seconds * 1000));
    } else if (item.starts_with("seed=")) {
      const auto seed = parse_integer(item.substr(5), {0, INT64_MAX});
      if (!seed) return blame(spelling, seed.status());
      options_.elastic.chaos_seed = static_cast<uint64_t>(*seed);
    } else {
      return invalid_argument(
          concat(spelling, ": expected kill=SECONDS or seed=N, got '", item, "'"));
    }
  }
  return Status::ok();
}

Status OptionReader::apply_cooldown(std::string_view spelling,
                                    std::span<const std::string_view> values) {
  std::optional<int32_t> least;
  std::optional<int32_t> most;
  HVD_TRY(read_number(spelling, values[0], {1, kMaxCooldownSeconds}, least));
  HVD_TRY(read_number(spelling, values[1], {least.value_or(1), kMaxCooldownSeconds}, most));
  if (least && most) options_.elastic.cooldown_range = {*least, *most};
  return Status::ok();
}

Status OptionReader::choose(Controller controller, std::string_view spelling) {
  if (options_.controller != Controller::kUnspecified && options_.controller != controller) {
    return invalid_argument(concat(spelling, " contradicts ", controller_spelling_));
  }
  options_.controller = controller;
  controller_spelling_ = spelling;
  return Status::ok();
}

Status OptionReader::add_interfaces(std::string_view spelling, std::string_view names) {
  std::vector<std::string>& interfaces = options_.network_interfaces;
  while (true) {
    const size_t comma = names.find(',');
    const std::string_view name = trim(names.substr(0, comma));
    if (name.empty()) {
      return refuse_value(invalid_argument(concat(spelling, ": a name is empty")));
    }
    if (std::find(interfaces.begin(), interfaces.end(), name) == interfaces.end()) {
      interfaces.emplace_back(name);
    }
    if (comma == std::string_view::npos) return Status::ok();
    names.remove_prefix(comma + 1);
  }
}

}  // namespace hvd::launch
