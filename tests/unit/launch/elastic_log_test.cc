// What an elastic job says at its end.
#include "launch/job/elastic_log.h"

#include <gtest/gtest.h>

#include <array>

#include "base/text.h"

namespace hvd::launch {
namespace {

using std::chrono::seconds;

constexpr std::array<int32_t, 2> kRunning = {0, 1};

TEST(ElasticResetCosts, AreFromABreakToTheNextEpoch) {
  ResetCosts costs;
  const TimePoint start{};
  costs.note_world(start, 1, "the first epoch");
  EXPECT_EQ(costs.text(), "");

  costs.note_failure(start + seconds(10), 1, kRunning);
  costs.note_break(start + seconds(11));  // the others hear of it
  costs.note_world(start + seconds(12), 2, "rank 1 failed");
  costs.note_world(start + seconds(20), 3, "newcomers have come");

  EXPECT_EQ(costs.text(),
            "horovodrun: 2 resets, 2.0 s between a break and the next epoch\n"
            "    after 2.0 s: rank 1 failed\n"
            "    after 0 ms: newcomers have come\n");
}

TEST(ElasticResetCosts, ANewcomerThatCannotStartBreaksNothing) {
  ResetCosts costs;
  const TimePoint start{};

  costs.note_failure(start, 2, kRunning);
  costs.note_failure(start + seconds(30), 0, kRunning);
  costs.note_world(start + seconds(31), 2, "rank 0 failed");

  EXPECT_EQ(costs.text(),
            "horovodrun: 1 reset, 1.0 s between a break and the next epoch\n"
            "    after 1.0 s: rank 0 failed\n");
}

TEST(ElasticResetCosts, OfManyResetsTheLastAreShown) {
  ResetCosts costs;

  for (uint64_t epoch = 2; epoch <= 13; ++epoch) {
    costs.note_world(TimePoint{}, epoch, concat("reset ", epoch));
  }

  EXPECT_NE(costs.text().find("(the first 2 are left out)\n    after 0 ms: reset 4\n"),
            std::string::npos)
      << costs.text();
}

}  // namespace
}  // namespace hvd::launch
