// Elastic jobs on one host: workers die, freeze, leave, come and go; the others go on in their
// processes.
#include <csignal>

#include "tests/process/elastic_fixture.h"

namespace hvd::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Elastic : public ElasticJobs {};

TEST_F(Elastic, SurvivorsOfADeathGoOnInTheirProcesses) {
  LaunchedJob job(command({"-np", "3", "--min-np", "2", "--blacklist-cooldown-range", "60", "60",
                           "--elastic-log", log_file()}));
  ASSERT_TRUE(wait_for_world(job, 1, 3)) << job.err();
  const pid_t first = process(job, 1, 0, 3), last = process(job, 1, 2, 3);

  ::kill(process(job, 1, 1, 3), SIGKILL);
  ASSERT_TRUE(wait_for_world(job, 2, 2)) << job.err();
  stop();

  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_EQ(process(job, 2, 0, 2), first);
  EXPECT_EQ(process(job, 2, 1, 2), last) << "survivors keep their order";
  EXPECT_THAT(job.err(), HasSubstr("was killed by signal 9 (Killed); 2 of at least 2 workers "
                                   "remain: new epoch 2 with 2 ranks"));
  EXPECT_THAT(job.err(), HasSubstr("horovodrun: 1 reset, "));
  EXPECT_THAT(job.err(), Not(HasSubstr("last operations"))) << "a lost peer is no surprise here";
  EXPECT_THAT(log_text(), HasSubstr("\"event\": \"failed\", \"epoch\": 1, \"worker\": 1"));
}

TEST_F(Elastic, TwoThatDieAtOnceAreReplaced) {
  LaunchedJob job(command({"-np", "4", "--min-np", "4"}));
  ASSERT_TRUE(wait_for_world(job, 1, 4)) << job.err();

  ::kill(process(job, 1, 1, 4), SIGKILL);
  ::kill(process(job, 1, 3, 4), SIGKILL);
  ASSERT_TRUE(wait_for_world(job, 2, 4)) << job.err();
  stop();

  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_EQ(process(job, 2, 0, 4), process(job, 1, 0, 4));
  EXPECT_EQ(process(job, 2, 1, 4), process(job, 1, 2, 4));
  EXPECT_THAT(job.err(), HasSubstr("2 of at least 4 workers are ready: waiting for more"));
}

TEST_F(Elastic, ADeathInInitCostsAnEpochAndNoTimeOut) {
  LaunchedJob job(command({"-np", "3", "--min-np", "2", "--gloo-timeout-seconds", "300",
                           "--blacklist-cooldown-range", "60", "60"},
                          {"dies-in-init", "1"}));

  ASSERT_TRUE(wait_for_world(job, 2, 2)) << job.err();
  stop();

  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.out(), Not(HasSubstr("epoch 1 rank")));
}

TEST_F(Elastic, ADeathInTheResetItselfCostsNoEpoch) {
  LaunchedJob job(command({"-np", "4", "--min-np", "2", "--blacklist-cooldown-range", "60", "60"},
                          {"dies-in-reset", "2"}));
  ASSERT_TRUE(wait_for_world(job, 1, 4)) << job.err();

  ::kill(process(job, 1, 1, 4), SIGKILL);
  ASSERT_TRUE(wait_for_world(job, 2, 2)) << job.err();
  stop();

  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_EQ(process(job, 2, 1, 2), process(job, 1, 3, 4));
  EXPECT_THAT(job.err(), HasSubstr("rank 2 on localhost exited with code 8"));
}

TEST_F(Elastic, ANewcomerThatCannotStartIsTriedThreeTimesAndHarmsNobody) {
  write_hosts("localhost slots=2\n");
  LaunchedJob job(command({"-np", "2", "--min-np", "1", "--hostfile", hosts_file(),
                           "--blacklist-cooldown-range", "1", "1", "--elastic-log", log_file()},
                          {"cannot-start", "2"}));
  ASSERT_TRUE(wait_for_world(job, 1, 2)) << job.err();

  write_hosts("localhost slots=3\n");
  ASSERT_TRUE(job.wait_for_error("exited with code 6", 3)) << job.err();
  stop();

  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.out(), Not(HasSubstr("epoch 2 ")));
}

TEST_F(Elastic, AFrozenWorkerIsKilledWithAReason) {
  LaunchedJob job(
      command({"-np", "3", "--min-np", "2", "--blacklist-cooldown-range", "60", "60"}),
      {.environment = {"HOROVOD_FROZEN_PEER_TIME_SECONDS=2", "HOROVOD_ELASTIC_READY_SECONDS=1"}});
  ASSERT_TRUE(wait_for_world(job, 1, 3)) << job.err();

  ::kill(process(job, 1, 2, 3), SIGSTOP);
  ASSERT_TRUE(wait_for_world(job, 2, 2)) << job.err();
  stop();

  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.err(),
              HasSubstr("rank 2 on localhost kept others waiting for 1 s after epoch 1 broke"));
}

TEST_F(Elastic, SigtermIsAPlannedLeave) {
  LaunchedJob job(command({"-np", "3", "--min-np", "1"}));
  ASSERT_TRUE(wait_for_world(job, 1, 3)) << job.err();

  ::kill(process(job, 1, 1, 3), SIGTERM);
  ASSERT_TRUE(wait_for_world(job, 2, 2)) << job.err();
  stop();

  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.err(), HasSubstr("rank 1 on localhost left as it was asked to; 2 of at least 1"));
  EXPECT_THAT(job.err(), Not(HasSubstr("signal")));
}

TEST_F(Elastic, WorkersComeAndGoWithTheHostFile) {
  write_hosts("localhost slots=1\n");
  LaunchedJob job(command({"-np", "1", "--min-np", "1", "--hostfile", hosts_file()}));
  ASSERT_TRUE(wait_for_world(job, 1, 1)) << job.err();

  write_hosts("localhost slots=3\n");
  ASSERT_TRUE(job.wait_for(" of 3 is ")) << job.err();
  write_hosts("localhost slots=1\n");
  ASSERT_TRUE(job.wait_for("rank 0 of 1 is ", 2)) << job.err();
  stop();

  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.out(), HasSubstr("is not needed: this worker was removed from the job: host "
                                   "localhost has only 1 slot now"));
}

TEST_F(Elastic, ADiscoveryScriptThatFailsLaterIsToldOnce) {
  write_hosts("localhost:1\n");
  LaunchedJob job(command(
      {"-np", "1", "--min-np", "1", "--host-discovery-script", "cat '" + hosts_file() + "'"}));
  ASSERT_TRUE(wait_for_world(job, 1, 1)) << job.err();

  write_hosts("two words\n");
  ASSERT_TRUE(job.wait_for_error("line 1: expected 'host slots=N' or 'host:N', got 'two words'"));
  write_hosts("localhost:2\n");
  ASSERT_TRUE(wait_for_world(job, 2, 2)) << job.err();
  stop();

  EXPECT_EQ(job.wait(), 0) << job.err();
}

// What it said before stays; it has 10 s. Here it hangs once, and knows more the next time.
TEST_F(Elastic, ADiscoveryScriptThatHangsIsKilledAndAskedAgain) {
  write_hosts("localhost:1\n");
  const std::string script = concat("grep -q hang '", hosts_file(), "' && echo localhost:2 > '",
                                    hosts_file(), "' && exec sleep 600; cat '", hosts_file(), "'");
  LaunchedJob job(command({"-np", "1", "--min-np", "1", "--host-discovery-script", script}));
  ASSERT_TRUE(wait_for_world(job, 1, 1)) << job.err();

  write_hosts("hang\n");
  ASSERT_TRUE(job.wait_for_error("did not end within 10 s")) << job.err();
  ASSERT_TRUE(wait_for_world(job, 2, 2)) << job.err();
  stop();

  EXPECT_EQ(job.wait(), 0) << job.err();
}

TEST_F(Elastic, ADiscoveryScriptThatFailsAtFirstFailsTheJob) {
  LaunchedJob job(command({"-np", "1", "--host-discovery-script", "echo oops >&2; exit 3"}));

  EXPECT_EQ(job.wait(), 125);
  EXPECT_THAT(job.err(), HasSubstr("exited with code 3: oops"));
}

TEST_F(Elastic, HostsMayComeAfterTheLauncher) {
  write_hosts("# none yet\n");
  for (const std::vector<std::string>& source :
       {std::vector<std::string>{"--host-discovery-script", "cat '" + hosts_file() + "'"},
        std::vector<std::string>{"--hostfile", hosts_file()}}) {
    write_hosts("\n# none yet\n");
    std::filesystem::remove(stop_file());
    std::vector<std::string> options = {"-np", "1", "--min-np", "1"};
    options.insert(options.end(), source.begin(), source.end());
    LaunchedJob job(command(options));
    ASSERT_TRUE(job.wait_for_error("names no host yet: waiting for hosts")) << job.err();

    write_hosts("localhost:1\n");
    ASSERT_TRUE(wait_for_world(job, 1, 1)) << job.err();
    stop();

    EXPECT_EQ(job.wait(), 0) << job.err();
  }
}

TEST_F(Elastic, HostsThatNeverComeEndTheJob) {
  LaunchedJob job(command(
      {"-np", "1", "--min-np", "1", "--host-discovery-script", "true", "--elastic-timeout", "1"}));

  EXPECT_EQ(job.wait(), 125);
  EXPECT_THAT(job.err(), HasSubstr("--host-discovery-script true named no host within 1 s"));
}

TEST_F(Elastic, MoreAtLeastThanAtMostIsRefused) {
  LaunchedJob job(command({"-np", "1", "--min-np", "3", "--max-np", "2"}));

  EXPECT_EQ(job.wait(), 2);
  EXPECT_THAT(job.err(), HasSubstr("--min-np 3 is more than --max-np 2"));
}

TEST_F(Elastic, TheResetLimitEndsTheJob) {
  LaunchedJob job(command({"-np", "2", "--min-np", "1", "--reset-limit", "0"}));
  ASSERT_TRUE(wait_for_world(job, 1, 2)) << job.err();

  ::kill(process(job, 1, 1, 2), SIGKILL);

  EXPECT_EQ(job.wait(), 137);
  EXPECT_THAT(job.err(), HasSubstr("number of resets during elastic job exceeded limit: 0"));
}

TEST_F(Elastic, TooFewForTooLongEndTheJob) {
  LaunchedJob job(command({"-np", "2", "--min-np", "2", "--blacklist-cooldown-range", "60", "60",
                           "--elastic-timeout", "1"}));
  ASSERT_TRUE(wait_for_world(job, 1, 2)) << job.err();

  ::kill(process(job, 1, 0, 2), SIGKILL);

  EXPECT_EQ(job.wait(), 137);
  EXPECT_THAT(job.err(), HasSubstr("only 1 of at least 2 workers came within 1 s "
                                   "(--elastic-timeout)"));
}

TEST_F(Elastic, ASignalToTheLauncherEndsEverybody) {
  LaunchedJob job(command({"-np", "2", "--min-np", "1"}));
  ASSERT_TRUE(wait_for_world(job, 1, 2)) << job.err();
  const ProcessWatch worker(process(job, 1, 1, 2));

  job.send(SIGTERM);

  EXPECT_EQ(job.wait(), 128 + SIGTERM);
  EXPECT_TRUE(worker.ends());
}

TEST_F(Elastic, WorkersEndWithAKilledLauncher) {
  LaunchedJob job(command({"-np", "2", "--min-np", "1"}));
  ASSERT_TRUE(wait_for_world(job, 1, 2)) << job.err();
  const ProcessWatch worker(process(job, 1, 1, 2));

  job.send(SIGKILL);

  EXPECT_TRUE(worker.ends());
  EXPECT_TRUE(job.wait_for_error("of horovodrun was killed; its workers on this host"))
      << job.err();
}

TEST_F(Elastic, ChaosKillsAndTheJobGoesOn) {
  LaunchedJob job(command({"-np", "3", "--min-np", "1", "--chaos", "kill=0.5,seed=7"}));

  ASSERT_TRUE(job.wait_for_error("chaos: rank ", 2)) << job.err();
  ASSERT_TRUE(job.wait_for("epoch 3 rank 0 of ")) << job.err();
  stop();

  EXPECT_EQ(job.wait(), 0) << job.err();
}

}  // namespace
}  // namespace hvd::test
