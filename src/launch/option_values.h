// option_values.h - what one option on the command line means for the Options. Pure; one thread.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "launch/option_table.h"
#include "launch/options.h"

namespace hvd::launch {

class OptionReader {
 public:
  explicit OptionReader(Options& options) : options_(options) {}

  // `spelling` is how the user named it, for messages. Options that contradict an earlier one are
  // refused; the same one again replaces it.
  Status apply(const OptionInfo& info, std::string_view spelling,
               std::span<const std::string_view> values);

 private:
  Status apply_switch(OptionId id, std::string_view spelling);
  Status apply_value(OptionId id, std::string_view spelling, std::string_view value);
  Status apply_tunable(const OptionInfo& info, std::string_view spelling, std::string_view value);
  Status apply_cooldown(std::string_view spelling, std::span<const std::string_view> values);
  Status choose(Controller controller, std::string_view spelling);
  Status add_interfaces(std::string_view spelling, std::string_view names);

  Options& options_;
  std::string controller_spelling_;
  std::map<TunableId, std::string> switch_spellings_;
};

}  // namespace hvd::launch
