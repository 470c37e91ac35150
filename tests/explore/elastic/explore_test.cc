// A reset under schedules that a test chooses: README.md.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "tests/explore/elastic/search.h"

namespace hvd::explore_elastic {
namespace {

// For each scenario; HVD_EXPLORE_SECONDS is what one kind of search has in all.
std::chrono::duration<double> share_of_time() {
  const char* text = std::getenv("HVD_EXPLORE_SECONDS");
  const double seconds = text == nullptr ? 3.0 : std::atof(text);
  return std::chrono::duration<double>(seconds / static_cast<double>(all_scenarios().size()));
}

Until end_of_share() {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::nanoseconds>(share_of_time());
}

TEST(ElasticSchedules, ThePlainOneEndsWell) {
  for (const Scenario& scenario : all_scenarios()) {
    const Outcome plain = run_schedule(scenario, {});
    EXPECT_EQ(plain.violation, "") << scenario.name;
  }
}

TEST(ElasticSchedules, RandomOnesBreakNoRule) {
  int64_t count = 0;
  for (const Scenario& scenario : all_scenarios()) {
    const Search search = try_random(scenario, 1, INT64_MAX, end_of_share());
    ASSERT_FALSE(search.finding) << scenario.name << ": " << describe(*search.finding);
    EXPECT_GT(search.schedules, 10) << scenario.name;
    count += search.schedules;
  }
  std::cout << count << " random schedules\n";
}

TEST(ElasticSchedules, ThoseThatDifferLittleFromThePlainOneBreakNoRule) {
  int64_t count = 0;
  for (const Scenario& scenario : all_scenarios()) {
    const Search search = try_deviations(scenario, end_of_share());
    ASSERT_FALSE(search.finding) << scenario.name << ": " << describe(*search.finding);
    EXPECT_GT(search.schedules, 10) << scenario.name;
    count += search.schedules;
  }
  std::cout << count << " schedules with one or two deviations\n";
}

TEST(ElasticReplay, RepeatsWhatTheEnvironmentSays) {
  const char* text = std::getenv("HVD_EXPLORE_ELASTIC_REPLAY");
  if (text == nullptr) GTEST_SKIP() << "HVD_EXPLORE_ELASTIC_REPLAY names no schedule";
  const auto run = replay(text);
  ASSERT_TRUE(run) << "expected 'SCENARIO / STEP:CHOICE ...', got '" << text << "'";
  for (const std::string& line : run->history) std::cout << "  " << line << "\n";
  EXPECT_EQ(run->violation, "");
}

}  // namespace
}  // namespace hvd::explore_elastic
