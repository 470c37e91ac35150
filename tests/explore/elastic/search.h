// search.h - schedules of an elastic job: random ones, all that differ little from the plain one,
// written ones. A schedule is the plain one (each worker in turn, no misfortune) and what differs
// from it, by step; so it can be written down, shortened and repeated.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/explore/elastic/model.h"

namespace hvd::explore_elastic {

using Schedule = std::map<int, int>;  // step -> which of the possible events

struct Outcome {
  std::string violation;  // empty: nothing was wrong
  std::vector<std::string> history;
  std::vector<int> choices_per_step;  // how many events were possible
  Schedule taken;                     // as it differed from the plain one
};
Outcome run_schedule(const Scenario& scenario, const Schedule& schedule);
Outcome run_random(const Scenario& scenario, uint64_t seed);

struct Finding {
  std::string violation, replay;
  std::vector<std::string> history;
};
struct Search {
  int64_t schedules = 0;
  std::optional<Finding> finding = {};
};
using Until = std::chrono::steady_clock::time_point;
Search try_random(const Scenario& scenario, uint64_t first_seed, int64_t most, Until end);
// Every schedule that differs from the plain one in one step, and then in two, until the time ends.
Search try_deviations(const Scenario& scenario, Until end);

// "deaths / 3:1 17:4", as Finding has it; and what it leads to. None: not understood.
std::optional<Outcome> replay(const std::string& text);
std::string describe(const Finding& finding);

}  // namespace hvd::explore_elastic
