#include "tests/explore/elastic/scenario.h"

namespace hvd::explore_elastic {

const std::vector<Scenario>& all_scenarios() {
  static const std::vector<Scenario> scenarios = {
      {.name = "deaths", .first = 3, .hosts = {{"a", 3}}, .kills = 2},
      {.name = "deaths-on-hosts", .first = 4, .hosts = {{"a", 2}, {"b", 2}}, .kills = 2},
      {.name = "too-few", .least = 3, .first = 3, .hosts = {{"a", 3}}, .kills = 1},
      {.name = "grows",
       .first = 1,
       .hosts = {{"a", 1}},
       .changes = {{{"a", 2}}, {{"a", 2}, {"b", 1}}},
       .kills = 1},
      {.name = "shrinks",
       .first = 3,
       .hosts = {{"a", 2}, {"b", 1}},
       .changes = {{{"a", 2}}, {{"a", 1}, {"b", 1}}},
       .kills = 1},
      {.name = "flaps",
       .first = 2,
       .hosts = {{"a", 1}, {"b", 1}},
       .changes = {{{"a", 1}}, {{"a", 1}, {"b", 1}}, {{"a", 1}}, {{"a", 1}, {"b", 1}}}},
      {.name = "leaves", .first = 3, .hosts = {{"a", 3}}, .kills = 1, .leaves = 2},
      {.name = "freezes", .first = 3, .hosts = {{"a", 2}, {"b", 1}}, .kills = 1, .freezes = 1},
      {.name = "cut-off",
       .least = 1,
       .first = 3,
       .hosts = {{"a", 1}, {"b", 1}, {"c", 1}},
       .cuts = {"c"},
       .kills = 1},
      {.name = "first-is-cut-off",
       .least = 2,
       .first = 3,
       .hosts = {{"a", 1}, {"b", 1}, {"c", 1}},
       .cuts = {"a"}},
      {.name = "bad-starts",
       .first = 2,
       .hosts = {{"a", 2}},
       .changes = {{{"a", 3}}},
       .kills = 1,
       .bad_starts = 2},
      {.name = "everything",
       .least = 2,
       .first = 3,
       .most = 5,
       .hosts = {{"a", 2}, {"b", 2}},
       .changes = {{{"a", 2}, {"b", 1}, {"c", 2}}, {{"a", 1}, {"c", 2}}},
       .cuts = {"c"},
       .kills = 2,
       .freezes = 1,
       .leaves = 1,
       .bad_starts = 1,
       .commits = 5},
  };
  return scenarios;
}

}  // namespace hvd::explore_elastic
