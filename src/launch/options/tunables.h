// tunables.h - the values that were given for the options of tunable_table.h, and what they become
// in a worker's environment. Pure; any thread.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "launch/options/tunable_table.h"
#include "launch/os/environment_list.h"

namespace hvd::launch {

// A checked value, in the words of the variable: "1" and "0" for a switch, bytes for mebibytes.
class Tunables {
 public:
  const std::optional<std::string>& get(TunableId id) const { return at(id).variable_text; }
  // As the user wrote it; for a switch "true" or "false".
  const std::optional<std::string>& given(TunableId id) const { return at(id).given_text; }
  bool is_on(TunableId id) const { return get(id) == "1"; }

  // Fails if `text` is not what the option takes; the message names neither option nor key.
  Status set(TunableId id, std::string_view text);
  void set_switch(TunableId id, bool on);

  // What the workers get. Values that mean nothing alone (a log file without autotuning, marks
  // without a timeline) are left out, as in the original.
  EnvironmentList to_environment() const;

 private:
  struct Value {
    std::optional<std::string> given_text = {};
    std::optional<std::string> variable_text = {};
  };
  const Value& at(TunableId id) const { return values_[static_cast<size_t>(id)]; }
  bool is_exported(TunableId id) const;

  std::array<Value, kTunableCount> values_{};
};

// The words that mean yes or no in a configuration file.
Result<bool> parse_switch(std::string_view text);

}  // namespace hvd::launch
