// Elastic jobs over hosts with networks of their own (network_hosts.h).
#include "tests/process/elastic_fixture.h"
#include "tests/process/network_hosts.h"

namespace hvd::test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

class ElasticNetwork : public ElasticJobs {
 protected:
  static void SetUpTestSuite() {
    hosts_ = std::make_unique<NetworkHosts>();
    if (hosts_->create({"hosta", "hostb", "hostc"})) return;
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
pid_t parent_of(pid_t pid) {
  std::ifstream file(concat("/proc/", pid, "/status"));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("PPid:")) return std::atoi(line.c_str() + 5);
  }
  return -1;
}

std::unique_ptr<NetworkHosts> ElasticNetwork::hosts_;
std::string ElasticNetwork::problem_;

TEST_F(ElasticNetwork, AHostIsAddedAndAnotherRemovedByTheScript) {
  write_hosts("hosta:1\nhostb:1\n");
  LaunchedJob job(command({"-np", "2", "--min-np", "1", "--host-discovery-script",
                           "cat '" + hosts_file() + "'"}),
                  {.environment = hosts_->environment()});
  ASSERT_TRUE(wait_for_world(job, 1, 2)) << job.err();

  write_hosts("hosta:1\nhostb:1\nhostc:1\n");
  ASSERT_TRUE(wait_for_world(job, 2, 3)) << job.err();
  write_hosts("hosta:1\nhostc:1\n");
  ASSERT_TRUE(wait_for_world(job, 3, 2)) << job.err();
  stop();

  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.err(), HasSubstr("host hostc with 1 slot was added"));
  EXPECT_THAT(job.err(), HasSubstr("rank 1 on hostb had to go: host hostb was removed"));
}

// The agent dies, and with it the workers of its host and the connection.
TEST_F(ElasticNetwork, AHostThatIsLostIsTakenOutAndTheOthersGoOn) {
  LaunchedJob job(command({"-np", "3", "--min-np", "2", "-H", "hosta:1,hostb:1,hostc:1"}),
                  {.environment = hosts_->environment()});
  ASSERT_TRUE(wait_for_world(job, 1, 3)) << job.err();

  ::kill(parent_of(process(job, 1, 2, 3)), SIGKILL);
  ASSERT_TRUE(wait_for_world(job, 2, 2)) << job.err();
  stop();

  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.err(), HasSubstr("rank 2 on hostc was lost: the connection was lost"));
  EXPECT_THAT(job.err(), HasSubstr("hostc gets no new workers any more"));
}

// Whoever has lost a peer inside Gloo leaves it, and builds another group with those that remain.
TEST_F(ElasticNetwork, AHostThatIsLostOverGlooIsTakenOutToo) {
  const std::string plugin =
      std::filesystem::path(launcher_path()).replace_filename("libhorovod_gloo.so").string();
  if (!std::filesystem::exists(plugin)) GTEST_SKIP() << "no plug-in";
  LaunchedJob job(command({"--gloo", "-np", "3", "--min-np", "2", "-H", "hosta:1,hostb:1,hostc:1"},
                          {"large", "1000000"}),
                  {.environment = hosts_->environment(
                       {"HOROVOD_GLOO_PLUGIN=" + plugin, "HOROVOD_LOG_LEVEL=info"})});
  ASSERT_TRUE(wait_for_world(job, 1, 3)) << job.err();

  ::kill(parent_of(process(job, 1, 2, 3)), SIGKILL);
  ASSERT_TRUE(wait_for_world(job, 2, 2)) << job.err();
  stop();

  EXPECT_EQ(job.wait(), 0) << job.err();
  for (const int rank : {0, 1}) EXPECT_EQ(process(job, 2, rank, 2), process(job, 1, rank, 3));
  const std::string said = job.out() + job.err(), uses = "Gloo carries the data between hosts";
  EXPECT_NE(said.find(uses), said.rfind(uses)) << "in both worlds: " << said;
  EXPECT_THAT(job.out(), HasSubstr("finished after "));
}

// ssh (here: nsenter) still reaches it, so its worker comes back and asks for a place.
TEST_F(ElasticNetwork, AHostThatOnlySshReachesIsGivenUpWithAReason) {
  LaunchedJob job(command({"-np", "3", "--min-np", "2", "-H", "hosta:1,hostb:1,hostc:1",
                           "--gloo-timeout-seconds", "3", "--elastic-log", log_file()}),
                  {.environment = hosts_->environment()});
  ASSERT_TRUE(wait_for_world(job, 1, 3)) << job.err();

  ASSERT_TRUE(hosts_->cut_link("hostc"));
  const bool has_gone_on = wait_for_world(job, 3, 2);
  stop();
  const int code = job.wait();
  ASSERT_TRUE(hosts_->restore_link("hostc"));

  EXPECT_TRUE(has_gone_on) << job.err();
  EXPECT_EQ(code, 0) << job.err();
  EXPECT_THAT(job.err(), HasSubstr("the network of host hostc does not carry the training: rank "));
  EXPECT_THAT(job.err(), HasSubstr("hostc gets no new workers any more"));
  EXPECT_THAT(log_text(), HasSubstr("\"event\": \"unreachable\""));
}

TEST_F(ElasticNetwork, AJobWhoseOtherHostOnlySshReachesEndsAndSaysSo) {
  ASSERT_TRUE(hosts_->cut_link("hostb"));
  LaunchedJob job(command({"-np", "2", "--min-np", "2", "-H", "hosta:1,hostb:1",
                           "--gloo-timeout-seconds", "3"}),
                  {.environment = hosts_->environment()});
  const int code = job.wait();
  ASSERT_TRUE(hosts_->restore_link("hostb"));

  EXPECT_NE(code, 0);
  EXPECT_THAT(job.err(), HasSubstr("only 1 of at least 2 workers remain"));
  EXPECT_THAT(job.err(), HasSubstr("the network of host hostb does not carry the training"));
}

// The link between two workers is cut and comes back while they look for each other: nobody is
// replaced, and nobody is blamed.
TEST_F(ElasticNetwork, ALinkThatIsCutAndComesBackCostsAResetAndNobody) {
  LaunchedJob job(command({"-np", "2", "--min-np", "2", "-H", "hosta:1,hostb:1",
                           "--gloo-timeout-seconds", "60"}),
                  {.environment = hosts_->environment()});
  ASSERT_TRUE(wait_for_world(job, 1, 2)) << job.err();

  ASSERT_TRUE(hosts_->cut_link("hostb"));
  const bool has_noticed = job.wait_for_error("new epoch 2 with 2 ranks");
  ASSERT_TRUE(hosts_->restore_link("hostb"));
  ASSERT_TRUE(has_noticed) << job.err();
  ASSERT_TRUE(wait_for_world(job, 2, 2)) << job.err();
  stop();

  EXPECT_EQ(job.wait(), 0) << job.err();
  for (const int rank : {0, 1}) EXPECT_EQ(process(job, 2, rank, 2), process(job, 1, rank, 2));
  EXPECT_THAT(job.err(), HasSubstr("horovodrun: 1 reset, "));
  EXPECT_THAT(job.err(), Not(HasSubstr("gets no new workers")));
  EXPECT_THAT(job.out(), HasSubstr("finished after "));
}

// Every other answer of the script lacks a host: its worker leaves as planned and another one
// comes, again and again. Who stays is never replaced.
TEST_F(ElasticNetwork, AHostThatFlapsInTheScriptComesAndGoes) {
  write_hosts("hosta:1\n");
  const std::string calls = concat("'", hosts_file(), ".calls'");
  const std::string script = concat("cat '", hosts_file(), "'; if [ -e ", calls, " ]; then rm ",
                                    calls, "; else : > ", calls, "; echo hostb:1; fi");
  LaunchedJob job(command({"-np", "1", "--min-np", "1", "--host-discovery-script", script}),
                  {.environment = hosts_->environment()});
  ASSERT_TRUE(job.wait_for("rank 1 of 2 is ", 3)) << job.err();
  ASSERT_TRUE(job.wait_for_error("host hostb was removed", 3)) << job.err();
  std::vector<ProcessWatch> guests;
  for (const pid_t pid : job.numbers_after("rank 1 of 2 is ")) guests.emplace_back(pid);
  stop();

  EXPECT_EQ(job.wait(), 0) << job.err();
  for (const ProcessWatch& guest : guests) EXPECT_TRUE(!guest.is_valid() || guest.ends());
  const std::vector<pid_t> first = job.numbers_after("rank 0 of 2 is ");
  EXPECT_THAT(first, Each(first.front())) << "the worker that stays keeps its process and its rank";
  EXPECT_THAT(job.err(), HasSubstr("rank 1 on hostb had to go: host hostb was removed"));
  EXPECT_THAT(job.err(), Not(HasSubstr("gets no new workers")));
  EXPECT_THAT(job.err(), Not(HasSubstr("was lost")));
}

TEST_F(ElasticNetwork, AWorkerOfAnotherHostDies) {
  LaunchedJob job(command({"-np", "4", "--min-np", "2", "-H", "hosta:2,hostb:2",
                           "--blacklist-cooldown-range", "1", "1"}),
                  {.environment = hosts_->environment()});
  ASSERT_TRUE(wait_for_world(job, 1, 4)) << job.err();

  ::kill(process(job, 1, 3, 4), SIGKILL);
  ASSERT_TRUE(wait_for_world(job, 2, 3)) << job.err();
  ASSERT_TRUE(wait_for_world(job, 3, 4)) << job.err();
  stop();

  EXPECT_EQ(job.wait(), 0) << job.err();
}

}  // namespace
}  // namespace hvd::test
