#include "report/rows.h"

#include <algorithm>
#include <cmath>

#include "goals.h"
#include "placement_limit.h"

namespace hvd::bench {
namespace {

std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  const size_t half = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + half, values.end());
  const double upper = values[half];
  if (values.size() % 2 == 1) return upper;
  return (upper + *std::max_element(values.begin(), values.begin() + half)) / 2;
}

bool near(const Round& round) { return is_near(round.before_ns) && is_near(round.after_ns); }

enum class Which { kNear, kFar, kAll };
bool counts(const Round& round, Which which) {
  return which == Which::kAll || near(round) == (which == Which::kNear);
}

// The figures that one entrant and another one have in the rounds in which both ran.
std::optional<double> median_ratio(const CaseReadings& c, size_t above, size_t below, Which which) {
  std::vector<double> ratios;
  for (const Round& round : c.rounds) {
    const double ratio = round.values[above] / round.values[below];
    if (counts(round, which) && std::isfinite(ratio)) ratios.push_back(ratio);
  }
  return median(std::move(ratios));
}

double median_value(const CaseReadings& c, size_t entrant) {
  for (const Which which : {Which::kNear, Which::kAll}) {
    std::vector<double> values;
    for (const Round& round : c.rounds) {
      if (counts(round, which) && std::isfinite(round.values[entrant])) {
        values.push_back(round.values[entrant]);
      }
    }
    if (const auto result = median(std::move(values))) return *result;
  }
  return std::nan("");
}

Rival compare(const CaseReadings& c, size_t rival, size_t ours) {
  return {.value = median_value(c, rival),
          .our_value = median_value(c, ours),
          .ratio = {.near = median_ratio(c, rival, ours, Which::kNear),
                    .far = median_ratio(c, rival, ours, Which::kFar)}};
}

bool applies(const Goal& goal, const Row& row, const std::string& bench) {
  return goal.bench == bench && goal.metric == row.metric && goal.ours == row.ours &&
         goal.np_min <= row.np && row.np <= goal.np_max && goal.bytes_min <= row.bytes &&
         row.bytes <= goal.bytes_max && row.case_name.find(goal.part_of_case) != std::string::npos;
}

bool is_other_mpi(const std::string& peer) {
  return peer != "openmpi" && peer != "mpich" && peer != "gloo";
}

bool some_goal_compares(const std::string& bench, const Row& row, const std::string& sibling) {
  return std::any_of(std::begin(kGoals), std::end(kGoals), [&](const Goal& goal) {
    return goal.versus == sibling && applies(goal, row, bench);
  });
}

void add_run(Row& row, const CaseReadings& c, size_t ours, const std::string& bench) {
  for (size_t i = 0; i < c.entrants.size(); ++i) {
    const Entrant& rival = c.entrants[i];
    if (rival.role == Role::kPeer) {
      row.peers.emplace(rival.name, compare(c, i, ours));
    } else if (rival.role == Role::kLimit) {
      if (!row.limit) row.limit = compare(c, i, ours);
    } else if (i != ours && some_goal_compares(bench, row, rival.name)) {
      row.siblings.emplace(rival.name, compare(c, i, ours));
    }
  }
}

Row new_row(const CaseReadings& c, size_t ours) {
  Row row{.case_name = c.name,
          .ours = c.entrants[ours].name,
          .metric = c.metric,
          .unit = c.unit,
          .np = c.np,
          .bytes = c.bytes,
          .value = median_value(c, ours),
          .peers = {},
          .siblings = {},
          .limit = {},
          .verdicts = {}};
  for (const Round& round : c.rounds) ++(near(round) ? row.near_rounds : row.far_rounds);
  return row;
}

void judge(Row& row, const std::string& bench) {
  for (const Goal& goal : kGoals) {
    if (!applies(goal, row, bench)) continue;
    const auto add = [&](const std::string& versus, std::optional<double> got,
                         Verdict::Bound bound) {
      row.verdicts.push_back({.versus = versus, .figure = goal.figure, .got = got, .bound = bound});
    };
    if (goal.versus == kValue) add("value", row.value, Verdict::Bound::kAtMost);
    if (goal.versus == kLimit && row.limit) {
      add("limit", row.limit->ratio.near, Verdict::Bound::kAtLeast);
    }
    for (const auto* rivals : {&row.peers, &row.siblings}) {
      for (const auto& [name, rival] : *rivals) {
        if (goal.versus == name ||
            (goal.versus == kOtherMpi && rivals == &row.peers && is_other_mpi(name))) {
          add(name, rival.ratio.near, Verdict::Bound::kAtLeast);
        }
      }
    }
  }
}

}  // namespace

std::vector<Row> make_rows(const std::vector<Readings>& runs) {
  std::vector<Row> rows;
  for (const Readings& run : runs) {
    for (const CaseReadings& c : run.cases) {
      for (size_t i = 0; i < c.entrants.size(); ++i) {
        if (c.entrants[i].role != Role::kOurs) continue;
        auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) {
          return r.case_name == c.name && r.ours == c.entrants[i].name;
        });
        if (row == rows.end()) row = rows.insert(rows.end(), new_row(c, i));
        add_run(*row, c, i, run.bench);
      }
    }
  }
  for (Row& row : rows) judge(row, runs.front().bench);
  return rows;
}

}  // namespace hvd::bench
