// rows.h - turns readings into rows: medians, ratios inside the same round, goals. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/readings.h"

namespace hvd::bench {

// Medians over the rounds of one placement; absent where there was no such round.
struct Split {
  std::optional<double> near;
  std::optional<double> far;
};

struct Rival {
  double value = 0;      // its median, near rounds if there are any
  double our_value = 0;  // ours in the same rounds: each MPI has a run of its own
  Split ratio;           // median of rival / ours inside a round
};

struct Verdict {
  std::string versus;
  double figure = 0;
  std::optional<double> got;  // absent: no near round to judge by
  enum class Bound { kAtLeast, kAtMost } bound = Bound::kAtLeast;
  bool reached() const {
    return got && (bound == Bound::kAtLeast ? *got >= figure : *got <= figure);
  }
};

// One of our entrants in one case, with all its rivals from all runs.
struct Row {
  std::string case_name;
  std::string ours;
  std::string metric;
  std::string unit;
  int np = 0;
  uint64_t bytes = 0;
  double value = 0;  // median, near rounds if there are any
  std::map<std::string, Rival> peers;
  std::map<std::string, Rival> siblings;  // our other entrants that a goal compares with
  std::optional<Rival> limit;
  int near_rounds = 0;
  int far_rounds = 0;
  std::vector<Verdict> verdicts;

  std::string title() const { return case_name + " " + ours; }
};

// All runs are of the same bench. Rows keep the order of the readings.
std::vector<Row> make_rows(const std::vector<Readings>& runs);

}  // namespace hvd::bench
