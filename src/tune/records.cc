#include "tune/records.h"

#include <cstdio>

#include "base/text.h"

namespace hvd::tune {
namespace {

std::string decimal(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string shortest(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

}  // namespace

std::string log_header() {
  std::string row =
      "hierarchical_allreduce,hierarchical_allgather,torus_allreduce,cache_enabled,cycle_time_ms,"
      "tensor_fusion_threshold,score";
  for (size_t k = 0; k < kKnobCount; ++k) row += concat(",", info_of(static_cast<Knob>(k)).name);
  return row + "\n";
}

std::string log_row(const LogContext& context, const Tuning& tuning, double score) {
  const char* two_levels = context.is_hierarchical ? "1" : "0";
  std::string row = concat(two_levels, ",", two_levels, ",0,", context.has_cache ? "1" : "0", ",",
                           shortest(context.cycle_time_ms), ",",
                           shortest(context.fusion_threshold_mb), ",", shortest(score));
  for (size_t k = 0; k < kKnobCount; ++k)
    row += concat(",", level_text(tuning, static_cast<Knob>(k)));
  return row + "\n";
}

std::string gain_text(const Estimate& gain) {
  return concat(decimal(gain.ratio, 3),
                " times the automatic tuning (95 % confidence: ", decimal(gain.low, 3), " to ",
                decimal(gain.high, 3), ", ", gain.count, " comparisons)");
}

std::string profile_text(const Tuning& tuning, const Origin& origin, const Estimate& gain) {
  std::string text = concat("# Found by the autotuner with ", origin.ranks, " ranks on ",
                            origin.hosts, origin.hosts == 1 ? " host.\n" : " hosts.\n");
  if (gain.count > 0) text += concat("# ", gain_text(gain), "\n");
  if (tuning == Tuning{}) text += "# Nothing is better than the automatic tuning.\n";
  for (size_t k = 0; k < kKnobCount; ++k) {
    const auto knob = static_cast<Knob>(k);
    if (tuning.is_automatic(knob)) continue;
    text += concat(info_of(knob).name, "=", level_text(tuning, knob), "\n");
  }
  return text;
}

Result<Tuning> parse_profile(std::string_view text) {
  std::string words;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    words += concat(line.substr(0, line.find('#')), "\n");
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parse_tuning(words);
}

}  // namespace hvd::tune
