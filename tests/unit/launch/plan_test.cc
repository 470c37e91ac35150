#include "launch/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/hosts.h"

namespace hvd::launch {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

PlanInputs inputs() {
  return {.hostname = "node7",
          .job_id = "0123456789abcdef",
          .environment = {"HOME=/home/ann", "HOROVOD_RANK=77", "HOROVOD_RANK=78"},
          .settings = {}};
}

TEST(LaunchPlan, GivesEveryRankItsPlace) {
  const auto plan = make_plan({.num_proc = 3, .command = {"true"}}, inputs());

  ASSERT_TRUE(plan.is_ok());
  ASSERT_EQ(plan.value().workers.size(), 3U);
  EXPECT_THAT(plan.value().workers[2].environment,
              IsSupersetOf({"HOME=/home/ann", "HOROVOD_RANK=2", "HOROVOD_SIZE=3",
                            "HOROVOD_LOCAL_RANK=2", "HOROVOD_LOCAL_SIZE=3", "HOROVOD_CROSS_RANK=0",
                            "HOROVOD_CROSS_SIZE=1", "HOROVOD_HOSTNAME=node7",
                            "HOROVOD_JOB_ID=0123456789abcdef", "PYTHONUNBUFFERED=1"}));
}

TEST(LaunchPlan, ReplacesInheritedVariablesInsteadOfAddingASecond) {
  const auto plan = make_plan({.num_proc = 1, .command = {"true"}}, inputs());

  ASSERT_TRUE(plan.is_ok());
  EXPECT_THAT(plan.value().workers[0].environment,
              Contains(::testing::StartsWith("HOROVOD_RANK=")).Times(1));
}

TEST(LaunchPlan, StartTimeoutComesFromTheOptionThenFromTheEnvironment) {
  PlanInputs given = inputs();
  given.settings.start_timeout = std::chrono::seconds(20);
  const auto timeout = [&](const Options& options) {
    return get_variable(make_plan(options, given).value().workers[0].environment,
                        "HOROVOD_GLOO_TIMEOUT_SECONDS");
  };

  EXPECT_EQ(timeout({.num_proc = 1, .start_timeout = std::chrono::seconds(9), .command = {"a"}}),
            "9");
  EXPECT_EQ(timeout({.num_proc = 1, .command = {"a"}}), "20");
  set_variable(given.environment, "HOROVOD_GLOO_TIMEOUT_SECONDS", "33");
  EXPECT_EQ(timeout({.num_proc = 1, .command = {"a"}}), "33");
}

TEST(LaunchPlan, OutputDirectoriesSortByRank) {
  const auto directory = [](int32_t num_proc, size_t rank) {
    const Options options{.num_proc = num_proc, .output_directory = "logs", .command = {"a"}};
    return make_plan(options, inputs()).value().workers[rank].output_directory;
  };

  EXPECT_EQ(directory(1, 0), "logs/rank.0");
  EXPECT_EQ(directory(10, 9), "logs/rank.9");
  EXPECT_EQ(directory(11, 9), "logs/rank.09");
  EXPECT_EQ(directory(101, 7), "logs/rank.007");
}

TEST(LaunchHosts, ReadsAList) {
  EXPECT_THAT(parse_hosts("h1:2,node-2.cluster_a:16").value(),
              ElementsAre(HostSlots{"h1", 2}, HostSlots{"node-2.cluster_a", 16}));
}

TEST(LaunchHosts, RefusesWhatIsNoList) {
  for (const char* text :
       {"", "h1", "h1:", "h1:0", "h1:x", ":2", "h1:2,", "h1:2:3", "h 1:2", "h1:-1"}) {
    EXPECT_FALSE(parse_hosts(text).is_ok()) << text;
  }
}

TEST(LaunchHosts, OnlyThisMachineIsAccepted) {
  const auto check = [](const char* hosts, const char* own, int32_t num_proc) {
    return check_one_host(parse_hosts(hosts).value(), own, num_proc);
  };

  EXPECT_TRUE(check("localhost:2", "node7", 2).is_ok());
  EXPECT_TRUE(check("127.0.0.1:1,localhost:1", "node7", 2).is_ok());
  EXPECT_TRUE(check("node7:4", "node7", 2).is_ok());
  EXPECT_TRUE(check("node7:4", "node7.cluster", 2).is_ok());
  EXPECT_TRUE(check("node7.cluster:4", "node7", 2).is_ok());
  EXPECT_THAT(check("node70:4", "node7", 2).message(), HasSubstr("runs on one host"));
  EXPECT_THAT(check("localhost:2", "node7", 3).message(),
              HasSubstr("more workers than -H has slots (2)"));
}

TEST(LaunchSettingsTest, ReadsTheGrace) {
  EXPECT_EQ(read_launch_settings({}).value().termination_grace, std::chrono::seconds(5));
  EXPECT_EQ(
      read_launch_settings({"HOROVOD_TERMINATION_GRACE_SECONDS=0.25"}).value().termination_grace,
      std::chrono::milliseconds(250));
}

TEST(LaunchSettingsTest, GarbageIsAnErrorThatNamesTheVariable) {
  for (const char* value : {"", "soon", "-1", "nan", "inf", "1s", "1e300"}) {
    const auto settings =
        read_launch_settings({std::string("HOROVOD_TERMINATION_GRACE_SECONDS=") + value});
    ASSERT_FALSE(settings.is_ok()) << value;
    EXPECT_THAT(settings.status().message(), HasSubstr("HOROVOD_TERMINATION_GRACE_SECONDS"));
  }
  EXPECT_FALSE(read_launch_settings({"HOROVOD_START_TIMEOUT=0"}).is_ok());
}

}  // namespace
}  // namespace hvd::launch
