#include "launch/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/text.h"
#include "launch/plan/hosts.h"
#include "launch/plan/ssh_policy.h"

namespace hvd::launch {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

PlanInputs inputs() {
  return {.hostname = "node7",
          .job_id = "0123456789abcdef",
          .executable = "/opt/horovodrun",
          .environment = {"HOME=/home/ann", "HOROVOD_RANK=77", "HOROVOD_RANK=78"},
          .settings = {},
          .hosts = {{{"localhost", 128}, true}}};
}

EnvironmentList environment_of(const Result<Plan>& plan, size_t rank) {
  return worker_environment(*plan, plan->workers[rank]);
}

TEST(LaunchPlan, GivesEveryRankItsPlace) {
  const auto plan = make_plan({.num_proc = 3, .command = {"true"}}, inputs());

  ASSERT_TRUE(plan.is_ok());
  ASSERT_EQ(plan.value().workers.size(), 3U);
  EXPECT_THAT(environment_of(plan, 2),
              IsSupersetOf({"HOME=/home/ann", "HOROVOD_RANK=2", "HOROVOD_SIZE=3",
                            "HOROVOD_LOCAL_RANK=2", "HOROVOD_LOCAL_SIZE=3", "HOROVOD_CROSS_RANK=0",
                            "HOROVOD_CROSS_SIZE=1", "HOROVOD_HOSTNAME=node7",
                            "HOROVOD_JOB_ID=0123456789abcdef", "PYTHONUNBUFFERED=1"}));
}

TEST(LaunchPlan, ReplacesInheritedVariablesInsteadOfAddingASecond) {
  const auto plan = make_plan({.num_proc = 1, .command = {"true"}}, inputs());

  ASSERT_TRUE(plan.is_ok());
  EXPECT_THAT(environment_of(plan, 0), Contains(::testing::StartsWith("HOROVOD_RANK=")).Times(1));
}

TEST(LaunchPlan, StartTimeoutComesFromTheOptionThenFromTheEnvironment) {
  PlanInputs given = inputs();
  given.settings.start_timeout = std::chrono::seconds(20);
  const auto timeout = [&](const Options& options) {
    return get_variable(environment_of(make_plan(options, given), 0),
                        "HOROVOD_GLOO_TIMEOUT_SECONDS");
  };

  EXPECT_EQ(timeout({.num_proc = 1, .start_timeout = std::chrono::seconds(9), .command = {"a"}}),
            "9");
  EXPECT_EQ(timeout({.num_proc = 1, .command = {"a"}}), "20");
  set_variable(given.environment, "HOROVOD_GLOO_TIMEOUT_SECONDS", "33");
  EXPECT_EQ(timeout({.num_proc = 1, .command = {"a"}}), "33");
  // How long to wait for hosts says nothing about ranks that were given a time of their own.
  EXPECT_EQ(timeout({.num_proc = 1, .start_timeout = std::chrono::seconds(9), .command = {"a"}}),
            "33");
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

PlanInputs two_hosts() {
  PlanInputs given = inputs();
  given.environment = {"HOME=/home/ann",         "OLDPWD=/x",
                       "CUDA_VISIBLE_DEVICES=1", "SSH_TTY=x",
                       "_HOROVOD_SECRET_KEY=k",  "BASH_FUNC_f%%=() { }",
                       "HOSTNAME=node7"};
  given.hosts = {{{"node7", 2}, true}, {{"far", 2}, false}};
  return given;
}

TEST(LaunchPlan, OtherHostsGetTheExportableEnvironment) {
  const auto plan = make_plan({.num_proc = 3, .command = {"true"}}, two_hosts());

  ASSERT_TRUE(plan.is_ok()) << plan.status().message();
  EXPECT_THAT(environment_of(plan, 0), Contains("CUDA_VISIBLE_DEVICES=1"));
  EXPECT_THAT(environment_of(plan, 2),
              ::testing::UnorderedElementsAre("HOME=/home/ann", "HOROVOD_JOB_ID=0123456789abcdef",
                                              "PYTHONUNBUFFERED=1", "HOROVOD_RANK=2",
                                              "HOROVOD_SIZE=3", "HOROVOD_LOCAL_RANK=0",
                                              "HOROVOD_LOCAL_SIZE=1", "HOROVOD_CROSS_RANK=1",
                                              "HOROVOD_CROSS_SIZE=2", "HOROVOD_HOSTNAME=far"));
}

TEST(LaunchPlan, OtherHostsAreReachedBySshThatNeverAsks) {
  Options options{.num_proc = 4, .start_timeout = std::chrono::seconds(7), .command = {"true"}};
  options.ssh = {.port = 2222, .identity_file = "my key", .host_keys = HostKeyCheck::kAcceptNew};
  const auto plan = make_plan(options, two_hosts());

  ASSERT_TRUE(plan.is_ok());
  EXPECT_TRUE(plan->hosts[0].agent_command.empty());
  EXPECT_THAT(
      plan->hosts[1].agent_command,
      IsSupersetOf({"ssh", "BatchMode=yes", "StrictHostKeyChecking=accept-new", "ConnectTimeout=7",
                    "2222", "my key", "far", "exec /opt/horovodrun --agent"}));
}

TEST(LaunchPlan, HostKeysAreNotCheckedOnRequestOrInAnMpiJobPod) {
  PlanInputs pod = two_hosts();
  pod.environment.emplace_back("K_MPI_JOB_ROLE=launcher");
  Options asked{.num_proc = 4, .command = {"true"}};
  asked.ssh.host_keys = HostKeyCheck::kNone;

  for (const auto& plan :
       {make_plan({.num_proc = 4, .command = {"a"}}, pod), make_plan(asked, two_hosts())}) {
    EXPECT_THAT(plan->hosts[1].agent_command, Contains("StrictHostKeyChecking=no"));
  }
}

TEST(LaunchPlan, SshIsNeverWeakerThanItsOwnConfiguration) {
  PlanInputs strict = two_hosts();
  strict.hosts[1].ssh_policy = OwnPolicy::kStrict;
  PlanInputs pod = strict;
  pod.environment.emplace_back("K_MPI_JOB_ROLE=launcher");

  for (const auto& inputs : {strict, pod}) {
    const auto plan = make_plan({.num_proc = 4, .command = {"a"}}, inputs);
    for (const std::string& word : plan->hosts[1].agent_command) {
      EXPECT_THAT(word, Not(HasSubstr("StrictHostKeyChecking")));
      EXPECT_THAT(word, Not(HasSubstr("KnownHosts")));
    }
  }
}

TEST(LaunchPlan, AHostIsNeverAnOptionOfSsh) {
  const auto plan = make_plan({.num_proc = 4, .command = {"a"}}, two_hosts());

  const std::vector<std::string>& command = plan->hosts[1].agent_command;
  ASSERT_GE(command.size(), 3u);
  EXPECT_EQ(command[command.size() - 3], "--");
  EXPECT_EQ(command[command.size() - 2], "far");
}

TEST(SshPolicy, IsReadFromWhatSshSays) {
  EXPECT_EQ(read_policy("port 22\nstricthostkeychecking true\n"), OwnPolicy::kStrict);
  EXPECT_EQ(read_policy("stricthostkeychecking yes"), OwnPolicy::kStrict);
  for (const char* word : {"ask", "accept-new", "false", "no", "off"}) {
    EXPECT_EQ(read_policy(concat("stricthostkeychecking ", word, "\nport 22\n")),
              OwnPolicy::kLenient);
  }
  EXPECT_EQ(read_policy(""), OwnPolicy::kStrict) << "nothing is known, so nothing is weakened";
  EXPECT_EQ(read_policy("hostname stricthostkeychecking\n"), OwnPolicy::kStrict);
}

// With a real ssh and a configuration of the test.
TEST(SshPolicy, AsksTheRealSsh) {
  if (access("/usr/bin/ssh", X_OK) != 0) GTEST_SKIP() << "ssh is not installed";
  const std::string path = concat(::testing::TempDir(), "/hvd-ssh-config-", getpid());
  std::ofstream(path) << "Host strict*\n  StrictHostKeyChecking yes\n";
  RemoteShell shell{.words = {"/usr/bin/ssh", "-F", path, "-o", "BatchMode=yes"}, .is_ssh = true};

  const auto policies = find_policies(shell, {"strict1", "other", "strict2"}, {"PATH=/usr/bin"},
                                      Deadline::after(std::chrono::seconds(20)));

  EXPECT_THAT(policies, ElementsAre(OwnPolicy::kStrict, OwnPolicy::kLenient, OwnPolicy::kStrict));
  shell.words = {"/bin/false"};
  EXPECT_THAT(
      find_policies(shell, {"other"}, {"PATH=/usr/bin"}, Deadline::after(std::chrono::seconds(20))),
      ElementsAre(OwnPolicy::kStrict));
  ::unlink(path.c_str());
}

TEST(LaunchPlan, AnotherProgramMayTakeTheConnection) {
  PlanInputs given = two_hosts();
  given.environment.emplace_back("HOROVOD_SSH_COMMAND=/bin/enter 'a b'");
  given.settings.remote_executable = "/usr/local/bin/horovodrun";
  const auto plan = make_plan({.num_proc = 4, .command = {"a"}}, given);

  EXPECT_THAT(plan->hosts[1].agent_command,
              ElementsAre("/bin/enter", "a b", "far", "exec /usr/local/bin/horovodrun --agent"));
}

TEST(LaunchPlan, NamesOfThisMachineAreOneHost) {
  PlanInputs given = inputs();
  given.hosts = {{{"127.0.0.1", 1}, true}, {{"far", 1}, false}, {{"node7", 2}, true}};
  const auto plan = make_plan({.num_proc = 4, .command = {"a"}}, given);

  ASSERT_TRUE(plan.is_ok());
  ASSERT_EQ(plan->hosts.size(), 2U);
  EXPECT_EQ(plan->hosts[0].name, "node7");
  EXPECT_THAT(plan->hosts[0].ranks, ElementsAre(0, 1, 2));
  EXPECT_EQ(plan->workers[2].place.local_size, 3);
}

TEST(LaunchPlan, HostsWithoutASlotTakeNoPart) {
  PlanInputs given = inputs();
  given.hosts = {
      {{"first", 0}, false}, {{"node7", 1}, true}, {{"idle", 0}, false}, {{"far", 2}, false}};
  const auto plan = make_plan({.num_proc = 3, .command = {"a"}}, given);

  ASSERT_TRUE(plan.is_ok());
  ASSERT_EQ(plan->hosts.size(), 2U);
  EXPECT_EQ(plan->hosts[1].name, "far");
  EXPECT_THAT(plan->hosts[1].ranks, ElementsAre(1, 2));
  EXPECT_EQ(plan->workers[2].host, 1U);
  EXPECT_EQ(plan->workers[2].place.cross_size, 1);
}

TEST(LaunchPlan, TooFewSlotsAreAMistake) {
  PlanInputs given = inputs();
  given.hosts = {{{"localhost", 2}, true}};

  EXPECT_THAT(make_plan({.num_proc = 3, .command = {"a"}}, given).status().message(),
              HasSubstr("-np 3 asks for more workers than the hosts have slots (2)"));
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
