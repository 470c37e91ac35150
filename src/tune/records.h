// records.h - what the autotuner leaves behind, as text: rows of its log, and profiles. Pure; any
// thread.
#pragma once

#include <string>
#include <string_view>

#include "tune/search.h"
#include "tune/tuning.h"

namespace hvd::tune {

// The columns of the original's log, which hold what they mean here, then a column for each knob.
struct LogContext {
  bool is_hierarchical = false;  // reductions run in two levels
  bool has_cache = true;
  double cycle_time_ms = 1;
  double fusion_threshold_mb = 128;
};
std::string log_header();
// `score` is in bytes per microsecond.
std::string log_row(const LogContext& context, const Tuning& tuning, double score);

// A profile: comments, then "NAME=VALUE" for each knob that is not automatic.
struct Origin {
  int ranks = 1;
  int hosts = 1;
};
std::string profile_text(const Tuning& tuning, const Origin& origin, const Estimate& gain);
Result<Tuning> parse_profile(std::string_view text);

// "1.21 times the automatic tuning (95 % confidence: 1.15 to 1.27, 8 comparisons)"
std::string gain_text(const Estimate& gain);

}  // namespace hvd::tune
