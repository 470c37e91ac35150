#include "launch/options/tunables.h"

#include <algorithm>
#include <cmath>

#include "base/settings.h"
#include "base/text.h"

namespace hvd::launch {
namespace {

constexpr int64_t kBytesPerMebibyte = int64_t{1} << 20;
constexpr std::array<std::string_view, 6> kLogLevels = {"TRACE",   "DEBUG", "INFO",
                                                        "WARNING", "ERROR", "FATAL"};
// Common in scripts for the original.
constexpr std::array<std::string_view, 2> kFormerLogLevels = {"WARN", "OFF"};

// As Python prints a float: "20.0", "0.5".
std::string decimal_text(double value) {
  std::string text = concat(value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

Result<std::string> variable_text(const TunableInfo& info, std::string_view text) {
  Range<int64_t> whole{.least = static_cast<int64_t>(info.range.least)};
  constexpr double kUnbounded = 9e18;
  if (info.range.most < kUnbounded) whole.most = static_cast<int64_t>(info.range.most);
  switch (info.kind) {
    case TunableKind::kInteger: {
      HVD_TRY_ASSIGN(const int64_t value, parse_integer(text, whole));
      return concat(value);
    }
    case TunableKind::kMebibytes: {
      HVD_TRY_ASSIGN(const int64_t value, parse_integer(text, whole));
      return concat(value * kBytesPerMebibyte);
    }
    case TunableKind::kDecimal: {
      HVD_TRY_ASSIGN(const double value, parse_decimal(text, info.range));
      return decimal_text(value);
    }
    case TunableKind::kSwitch:
    case TunableKind::kText:
      if (text.empty()) return invalid_argument("expected a file name, got ''");
      return std::string(text);
    case TunableKind::kLogLevel: {
      if (const auto former = parse_choice(text, kFormerLogLevels))
        return std::string(kFormerLogLevels[*former]);
      HVD_TRY_ASSIGN(const size_t level, parse_choice(text, kLogLevels));
      return std::string(kLogLevels[level]);
    }
  }
  return invalid_argument("no such kind of value");
}

}  // namespace

Result<bool> parse_switch(std::string_view text) {
  static constexpr std::array<std::string_view, 8> kWords = {"false", "true", "no", "yes",
                                                             "off",   "on",   "0",  "1"};
  const auto index = parse_choice(text, kWords);
  if (!index) return invalid_argument(concat("expected true or false, got '", text, "'"));
  return *index % 2 == 1;
}

Status Tunables::set(TunableId id, std::string_view text) {
  const TunableInfo& info = tunable_info(id);
  if (info.kind == TunableKind::kSwitch) {
    HVD_TRY_ASSIGN(const bool on, parse_switch(text));
    set_switch(id, on);
    return Status::ok();
  }
  HVD_TRY_ASSIGN(std::string value, variable_text(info, text));
  HVD_TRY(check_setting(info.variable, value));  // here, and not on every rank
  values_[static_cast<size_t>(id)] = {.given_text = std::string(text),
                                      .variable_text = std::move(value)};
  return Status::ok();
}

void Tunables::set_switch(TunableId id, bool on) {
  values_[static_cast<size_t>(id)] = {.given_text = on ? "true" : "false",
                                      .variable_text = on ? "1" : "0"};
}

bool Tunables::is_exported(TunableId id) const {
  const TunableInfo& info = tunable_info(id);
  // Also the switch itself: --no-autotune leaves the variable as it is.
  // A profile is used without it too.
  if (info.config.section == "autotune" && id != TunableId::kAutotuneProfile)
    return is_on(TunableId::kAutotune);
  return id != TunableId::kTimelineMarkCycles || get(TunableId::kTimelineFilename).has_value();
}

EnvironmentList Tunables::to_environment() const {
  EnvironmentList list;
  for (const TunableInfo& info : tunable_table()) {
    const auto& value = get(info.id);
    if (value && is_exported(info.id)) list.push_back(concat(info.variable, "=", *value));
  }
  return list;
}

}  // namespace hvd::launch
