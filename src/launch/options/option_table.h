// option_table.h - every option of horovodrun, once: spelling, value, group, one sentence.
// Parser and --help read this table, so they cannot disagree. Options that only set a variable of
// the workers come from tunable_table.h. Pure; any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "launch/options/tunable_table.h"

namespace hvd::launch {

enum class OptionId {
  kNumProc,
  kHosts,
  kHostfile,
  kConfigFile,
  kStartTimeout,
  kNetworkInterfaces,
  kNetworkInterface,
  kOutputFilename,
  kPrefixTimestamp,
  kVerbose,
  kDisableCache,
  kCheckBuild,
  kGpu,
  kPlanJson,
  kParseJson,
  kAgent,
  kDecide,
  kVersion,
  kHelp,
  kSshPort,
  kSshIdentityFile,
  kSshNoHostKeyCheck,
  kGloo,
  kMpi,
  kJsrun,
  kMpiArgs,
  kBindingArgs,
  kTcp,
  kMinNumProc,
  kMaxNumProc,
  kSlotsPerHost,
  kElasticTimeout,
  kResetLimit,
  kBlacklistCooldownRange,
  kHostDiscoveryScript,
  kElasticLog,
  kJoin,
  kKeyFile,
  kWholeHosts,
  kChaos,
  kTunable,
};

struct OptionInfo {
  OptionId id;
  std::string_view group;
  std::vector<std::string_view> names;
  std::string_view value_name;  // empty: a switch
  std::string_view help;
  FlagVisibility visibility = FlagVisibility::kShown;
  size_t value_count = 1;  // how many arguments follow, if it takes a value
  std::optional<TunableId> tunable = {};
  bool turns_on = true;  // of a tunable that is a switch

  bool takes_value() const { return !value_name.empty(); }
};

std::span<const OptionInfo> option_table();
std::span<const std::string_view> option_groups();  // in the order of --help

// By full name, or by a beginning of a double-dash name that fits one option only.
// The failure names what was asked for and, if something is near, what was perhaps meant.
Result<const OptionInfo*> find_option(std::string_view name);

// Whether an argument is the complete name of an option.
bool is_option_name(std::string_view name);

}  // namespace hvd::launch
