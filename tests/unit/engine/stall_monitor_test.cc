#include "engine/health/stall_monitor.h"

#include <gtest/gtest.h>

namespace hvd::engine {
namespace {

using std::chrono::seconds;

class StallMonitorTest : public ::testing::Test {
 protected:
  static Settings settings(int check, int shutdown) {
    Settings s;
    s.stall_check_time = seconds(check);
    s.stall_shutdown_time = seconds(shutdown);
    return s;
  }
  StallReport look(StallMonitor& monitor, int at_second, uint64_t ticket = 1) {
    const std::vector<Waiting> waiting{{"allreduce 'fc1'", ticket, {1}}};
    return monitor.look(start_ + seconds(at_second), 0, {10, 11}, waiting,
                        [](int) { return std::string("#7 allreduce 'conv'"); });
  }
  const TimePoint start_{std::chrono::hours(1)};
};

TEST_F(StallMonitorTest, SaysNothingBeforeTheCheckTime) {
  StallMonitor monitor(settings(60, 0));
  EXPECT_EQ(look(monitor, 0).text, "");
  EXPECT_EQ(look(monitor, 59).text, "");
}

TEST_F(StallMonitorTest, NamesTensorMissingRankAndWhatItDidLast) {
  StallMonitor monitor(settings(60, 0));
  look(monitor, 0);

  const StallReport report = look(monitor, 61);

  EXPECT_NE(report.text.find("\n11: [allreduce 'fc1' (61 s)]"), std::string::npos) << report.text;
  EXPECT_NE(report.text.find("rank 11 did last: #7 allreduce 'conv'"), std::string::npos)
      << report.text;
  EXPECT_FALSE(report.shut_down);
}

TEST_F(StallMonitorTest, RepeatsItselfOncePerCheckTime) {
  StallMonitor monitor(settings(60, 0));
  look(monitor, 0);
  EXPECT_NE(look(monitor, 61).text, "");
  EXPECT_EQ(look(monitor, 80).text, "");
  EXPECT_NE(look(monitor, 122).text, "");
}

TEST_F(StallMonitorTest, TheSameNameSubmittedAgainIsAnotherWait) {
  StallMonitor monitor(settings(60, 0));
  for (int second = 0; second < 300; second += 5) {
    EXPECT_EQ(look(monitor, second, static_cast<uint64_t>(second)).text, "") << second;
  }
}

TEST_F(StallMonitorTest, EndsTheJobAtTheShutdownTime) {
  StallMonitor monitor(settings(60, 120));
  look(monitor, 0);
  EXPECT_FALSE(look(monitor, 61).shut_down);

  const StallReport report = look(monitor, 121);

  EXPECT_TRUE(report.shut_down);
  EXPECT_NE(report.text.find("\n11!: ["), std::string::npos) << report.text;
}

TEST_F(StallMonitorTest, IsOffWhenDisabled) {
  Settings off = settings(60, 0);
  off.stall_check_disable = true;
  EXPECT_FALSE(StallMonitor(off).is_due(start_));
  EXPECT_TRUE(StallMonitor(settings(60, 0)).is_due(start_));
}

}  // namespace
}  // namespace hvd::engine
