// option_table.h - every option of horovodrun, once: spelling, value, one sentence.
// Parser and --help read this table, so they cannot disagree. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hvd::launch {

enum class OptionId {
  kNumProc,
  kHosts,
  kStartTimeout,
  kOutputFilename,
  kPrefixTimestamp,
  kVerbose,
  kVersion,
  kHelp,
};

struct OptionInfo {
  OptionId id;
  std::vector<std::string_view> names;
  std::string_view value_name;  // empty: a switch
  std::string_view help;

  bool takes_value() const { return !value_name.empty(); }
};

std::span<const OptionInfo> option_table();

// By full name, or by a beginning of a double-dash name that fits one option only.
// The failure names what was asked for and, if something is near, what was perhaps meant.
Result<const OptionInfo*> find_option(std::string_view name);

}  // namespace hvd::launch
