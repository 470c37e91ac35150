// option_values.h - what one option on the command line means for the Options. Pure; one thread.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/parse.h"
#include "base/status.h"
#include "launch/options/option_table.h"
#include "launch/options/options.h"

namespace hvd::launch {

class OptionReader {
 public:
  explicit OptionReader(Options& options) : options_(options) {}

  // `spelling` is how the user named it, for messages. Options that contradict an earlier one are
  // refused; the same one again replaces it. Fails for words that are not understood; whether the
  // values can be used is said by values().
  Status apply(const OptionInfo& info, std::string_view spelling,
               std::span<const std::string_view> values);

  // The first value that was of the right kind and cannot be used.
  const Status& values() const { return values_; }

 private:
  Status apply_switch(OptionId id, std::string_view spelling);
  Status apply_value(OptionId id, std::string_view spelling, std::string_view value);
  Status apply_tunable(const OptionInfo& info, std::string_view spelling, std::string_view value);
  Status apply_chaos(std::string_view spelling, std::string_view value);
  Status apply_cooldown(std::string_view spelling, std::span<const std::string_view> values);
  Status choose(Controller controller, std::string_view spelling);
  Status add_interfaces(std::string_view spelling, std::string_view names);
  Status read_text(std::string_view spelling, std::string_view what, std::string_view value,
                   std::string& out);
  Status read_number(std::string_view spelling, std::string_view value, Range<int64_t> range,
                     std::optional<int32_t>& out);
  Status read_seconds(std::string_view spelling, std::string_view value,
                      std::optional<std::chrono::seconds>& out);
  Status refuse_value(Status why);

  Options& options_;
  Status values_ = {};
  std::string controller_spelling_;
  std::map<TunableId, std::string> switch_spellings_;
};

}  // namespace hvd::launch
