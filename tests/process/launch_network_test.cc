// horovodrun between hosts with networks of their own (network_hosts.h): the store, the doctor, and
// a host that falls silent. Skipped where namespaces are not permitted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/process/network_hosts.h"
#include "tests/process/ssh_server.h"

namespace hvd::test {
namespace {

using std::chrono::seconds;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class LaunchNetwork : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    hosts_ = std::make_unique<NetworkHosts>();
    if (hosts_->create({"hosta", "hostb"})) return;
    problem_ = hosts_->problem();
    hosts_.reset();
  }
  static void TearDownTestSuite() { hosts_.reset(); }
  void SetUp() override {
    if (!hosts_) GTEST_SKIP() << "hosts as network namespaces: " << problem_;
  }

  static std::unique_ptr<NetworkHosts> hosts_;
  static std::string problem_;
};
std::unique_ptr<NetworkHosts> LaunchNetwork::hosts_;
std::string LaunchNetwork::problem_;

TEST_F(LaunchNetwork, OtherHostsReachTheStoreOfTheLauncher) {
  LaunchedJob job({"-np", "2", "-H", "hosta:1,hostb:1", "bash", "-c",
                   "for a in ${HOROVOD_STORE_ADDRESSES//,/ }; do case $a in 10.99.*) "
                   "exec 3<>/dev/tcp/${a%:*}/${a##*:} && echo $(hostname) reached it;; esac; done"},
                  {.environment = hosts_->environment()});

  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.out(), HasSubstr("[0]<stdout>:hosta reached it\n"));
  EXPECT_THAT(job.out(), HasSubstr("[1]<stdout>:hostb reached it\n"));
}

TEST_F(LaunchNetwork, AnInterfaceThatIsNotThereIsAMistake) {
  LaunchedJob job({"-np", "2", "-H", "hosta:1,hostb:1", "--network-interfaces", "nope0", "true"},
                  {.environment = hosts_->environment()});

  EXPECT_EQ(job.wait(), 2);
  EXPECT_THAT(job.err(), ContainsRegex("--network-interfaces: .*nope0.*br0"));
}

TEST_F(LaunchNetwork, TheDoctorMeasuresEveryPair) {
  LaunchedJob job({"doctor", "-H", "hosta:1,hostb:1"}, {.environment = hosts_->environment()});

  EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
  EXPECT_THAT(job.out(), ContainsRegex("\n  hosta +- +[0-9]+ [um]s, [0-9.]+ [kMG]B/s\n"));
  EXPECT_THAT(job.out(), ContainsRegex("\n  hostb +[0-9]+ [um]s, [0-9.]+ [kMG]B/s +-\n"));
  EXPECT_THAT(job.out(), HasSubstr("Interfaces    eth0 10.99.0.1"));
}

TEST_F(LaunchNetwork, TheDoctorNamesHostsThatDoNotReachEachOther) {
  ASSERT_TRUE(hosts_->cut_link("hostb"));
  LaunchedJob job({"doctor", "-H", "hosta:1,hostb:1"}, {.environment = hosts_->environment()});

  EXPECT_EQ(job.wait(), 1) << job.out() << job.err();
  ASSERT_TRUE(hosts_->restore_link("hostb"));
  EXPECT_THAT(job.out(), ContainsRegex("host hosta does not reach host hostb: .*; open the ports"));
  EXPECT_THAT(job.out(), ContainsRegex("\n  hosta +- +no\n"));
}

TEST_F(LaunchNetwork, AHostThatFallsSilentIsNamed) {
  LaunchedJob job({"-np", "2", "-H", "hosta:1,hostb:1", "sh", "-c",
                   "[ $HOROVOD_RANK = 0 ] || echo agent $PPID.; echo pid $$; sleep 1000"},
                  {.environment = hosts_->environment()});
  ASSERT_TRUE(job.wait_for("pid ", 2));
  const ProcessWatch agent(job.numbers_after("agent ").at(0));

  agent.send(SIGSTOP);

  EXPECT_EQ(job.wait(), 125);
  agent.send(SIGKILL);
  EXPECT_LT(job.took(), seconds(30));
  EXPECT_THAT(last_line(job.err()),
              ContainsRegex("host hostb with rank 1 was lost after .*: nothing was heard from it "
                            "for 1[0-9] s; the other 1 rank was ended"));
}

class LaunchSsh : public LaunchNetwork {
 protected:
  void SetUp() override {
    LaunchNetwork::SetUp();
    if (IsSkipped()) return;
    if (!SshServers::is_installed()) GTEST_SKIP() << "no ssh server is installed";
    if (!NetworkHosts::is_real_root())
      GTEST_SKIP() << "only root can run a server that others log in to";
    ASSERT_TRUE(servers_.prepare());
    for (const char* host : {"hosta", "hostb"}) ASSERT_TRUE(servers_.start(*hosts_, host)) << host;
  }
  std::vector<std::string> job_on_both(const std::string& script) const {
    std::vector<std::string> arguments = servers_.options();
    for (const std::string& word : shell(2, script)) arguments.push_back(word);
    arguments.insert(arguments.begin(), {"-H", "10.99.0.1:1,10.99.0.2:1"});
    return arguments;
  }

  SshServers servers_;
};

TEST_F(LaunchSsh, RanksRunBehindARealServer) {
  LaunchedJob job(job_on_both("read x; echo $(hostname) $HOROVOD_RANK/$HOROVOD_SIZE $x"),
                  {.input = "input\n"});

  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.out(), HasSubstr("[0]<stdout>:hosta 0/2 input\n"));
  EXPECT_THAT(job.out(), HasSubstr("[1]<stdout>:hostb 1/2\n"));
}

TEST_F(LaunchSsh, ControlCAndAKilledLauncherEndTheRanks) {
  for (int number : {SIGINT, SIGKILL}) {
    LaunchedJob job(job_on_both("sleep 1000 & echo child $!; echo pid $$; wait"));
    ASSERT_TRUE(job.wait_for("pid ", 2));
    std::vector<ProcessWatch> watches;
    for (const char* word : {"child ", "pid "}) {
      for (pid_t pid : job.numbers_after(word)) watches.emplace_back(pid);
    }

    job.send(number);

    EXPECT_EQ(job.wait(), number == SIGINT ? 130 : 1000 + SIGKILL);
    for (const ProcessWatch& watch : watches) EXPECT_TRUE(!watch.is_valid() || watch.ends());
  }
}

TEST_F(LaunchSsh, AHostWhoseCableIsPulledIsNamedAndItsRanksEnd) {
  LaunchedJob job(job_on_both("echo pid $$; sleep 1000"));
  ASSERT_TRUE(job.wait_for("pid ", 2));
  std::vector<ProcessWatch> ranks;
  for (pid_t pid : job.numbers_after("pid ")) ranks.emplace_back(pid);

  ASSERT_TRUE(hosts_->cut_link("hostb"));

  EXPECT_EQ(job.wait(), 125);
  // By the agent, which hears nothing from here any more.
  for (const ProcessWatch& rank : ranks) {
    EXPECT_TRUE(!rank.is_valid() || rank.ends_within(seconds(5)));
  }
  ASSERT_TRUE(hosts_->restore_link("hostb"));
  EXPECT_LT(job.took(), seconds(30));
  EXPECT_THAT(last_line(job.err()), ContainsRegex("host 10.99.0.2 with rank 1 was lost"));
}

TEST_F(LaunchSsh, WhatSshSaysIsShown) {
  LaunchedJob job({"-p", "2222", "-i", "/no/such/key", "--ssh-no-host-key-check", "-np", "1", "-H",
                   "10.99.0.1:1", "true"},
                  {.environment = {"SSH_AUTH_SOCK="}});

  EXPECT_EQ(job.wait(), 125);
  EXPECT_THAT(job.err(), HasSubstr("Permission denied"));
}

}  // namespace
}  // namespace hvd::test
