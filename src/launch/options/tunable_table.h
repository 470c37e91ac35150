// tunable_table.h - every option that only sets a variable of the workers, once: flags, key in the
// configuration file, variable, range. Command line, configuration file, --help and the worker's
// environment all read this table, so they cannot disagree; what an option means is the sentence of
// the core's own table (base/settings.cc) about its variable. Pure; any thread.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/parse.h"

namespace hvd::launch {

enum class TunableId {
  kFusionThreshold,
  kCycleTime,
  kCacheCapacity,
  kHierarchicalAllreduce,
  kHierarchicalAllgather,
  kTorusAllreduce,
  kAutotune,
  kAutotuneLogFile,
  kAutotuneProfile,
  kAutotuneWarmupSamples,
  kAutotuneStepsPerSample,
  kAutotuneBayesOptMaxSamples,
  kAutotuneGaussianProcessNoise,
  kTimelineFilename,
  kTimelineMarkCycles,
  kStallCheckDisable,
  kStallWarningTime,
  kStallShutdownTime,
  kMpiThreadsDisable,
  kNumNcclStreams,
  kThreadAffinity,
  kGlooTimeout,
  kLogLevel,
  kLogHideTime,
};
inline constexpr size_t kTunableCount = static_cast<size_t>(TunableId::kLogHideTime) + 1;

enum class TunableKind { kInteger, kMebibytes, kDecimal, kSwitch, kText, kLogLevel };

enum class FlagVisibility { kShown, kHidden, kObsolete };

struct TunableFlag {
  std::string_view name;
  bool turns_on = true;  // of a switch: what the flag says
  FlagVisibility visibility = FlagVisibility::kShown;
  // Empty: what the variable's sentence says, or of a later flag "turn it off".
  std::string_view help = {};
};

// Where the configuration file names it. `inverted`: true there means false here. `if_missing`:
// what a section means that does not have the key.
struct ConfigKey {
  std::string_view section;
  std::string_view key;
  bool inverted = false;
  std::optional<bool> if_missing = {};
};

struct TunableInfo {
  TunableId id;
  std::string_view attribute;  // what Python calls it: args.<attribute>
  std::string_view group;      // heading in --help
  TunableKind kind;
  std::vector<TunableFlag> flags;
  ConfigKey config;
  std::string_view variable;
  Range<double> range = {0};

  bool takes_value() const { return kind != TunableKind::kSwitch; }
};

std::span<const TunableInfo> tunable_table();  // by id
const TunableInfo& tunable_info(TunableId id);

}  // namespace hvd::launch
