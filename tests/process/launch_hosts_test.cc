// horovodrun over several hosts: places, output, failures, signals. The hosts are this machine
// under other names (remote_stub.h), reached through the real agent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/process/remote_stub.h"

namespace hvd::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class LaunchHosts : public ::testing::Test {
 protected:
  // A job that has said "ready" on every rank, whose processes the test then watches.
  void expect_all_to_end(LaunchedJob& job, size_t count) {
    std::vector<ProcessWatch> watches;
    for (const char* word : {"child ", "pid "}) {
      for (pid_t pid : job.numbers_after(word)) watches.emplace_back(pid);
    }
    EXPECT_EQ(watches.size(), count);
    watches_ = std::move(watches);
  }
  void check_all_ended() const {
    for (const ProcessWatch& watch : watches_) EXPECT_TRUE(!watch.is_valid() || watch.ends());
  }

  RemoteStub stub_;
  TemporaryDirectory directory_;
  std::vector<ProcessWatch> watches_;
};

constexpr char kStubborn[] =
    "trap '' TERM HUP INT; sleep 1000 & echo child $!; echo pid $$; while :; do wait; done";
constexpr char kObedient[] = "sleep 1000 & echo child $!; echo pid $$; wait";

TEST_F(LaunchHosts, EveryRankFindsItsPlaceOnItsHost) {
  LaunchedJob job(
      shell_on("localhost:1,far:2,away:2", 4,
               "echo $HOROVOD_RANK/$HOROVOD_SIZE $HOROVOD_LOCAL_RANK/$HOROVOD_LOCAL_SIZE"
               " $HOROVOD_CROSS_RANK/$HOROVOD_CROSS_SIZE $HOROVOD_HOSTNAME. $EXTRA"),
      {.environment = stub_.environment({"EXTRA=kept"})});

  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.out(), HasSubstr("[0]<stdout>:0/4 0/1 0/3 "));
  EXPECT_THAT(job.out(), HasSubstr("[1]<stdout>:1/4 0/2 1/3 far. kept\n"));
  EXPECT_THAT(job.out(), HasSubstr("[2]<stdout>:2/4 1/2 0/1 far. kept\n"));
  EXPECT_THAT(job.out(), HasSubstr("[3]<stdout>:3/4 0/1 2/3 away. kept\n"));
}

TEST_F(LaunchHosts, WorkersAreInTheSameDirectoryAndKeepTheirArguments) {
  LaunchedJob job({"-np", "1", "-H", "far:1", "sh", "-c", "pwd; printf '<%s>' \"$@\"", "x", "a b",
                   "it's", "$HOME", ""},
                  {.environment = stub_.environment()});

  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.out(), HasSubstr("[0]<stdout>:" + std::filesystem::current_path().string()));
  EXPECT_THAT(job.out(), HasSubstr("<a b><it's><$HOME><>"));
}

TEST_F(LaunchHosts, OutputOfOtherHostsArrivesWholeAndInFiles) {
  std::vector<std::string> arguments =
      shell_on("localhost:1,far:1", 2, "seq 1 200000; printf 'no newline' >&2");
  arguments.insert(arguments.begin(), {"--output-filename", directory_ / "logs"});
  LaunchedJob job(arguments, {.environment = stub_.environment()});

  EXPECT_EQ(job.wait(), 0) << job.err();
  for (const char* rank : {"0", "1"}) {
    const std::string text = contents(directory_ / (std::string("logs/rank.") + rank + "/stdout"));
    EXPECT_EQ(LaunchedJob::occurrences(text, "\n"), 200000);
    EXPECT_THAT(text, EndsWith("\n200000\n"));
    EXPECT_THAT(job.err(), HasSubstr(std::string("[") + rank + "]<stderr>:no newline\n"));
  }
  EXPECT_EQ(LaunchedJob::occurrences(job.out(), "\n"), 400000);
}

TEST_F(LaunchHosts, RankZeroOnAnotherHostReadsOurInput) {
  LaunchedJob job(shell_on("far:2", 2, "wc -l; read x; echo end $x"),
                  {.environment = stub_.environment(), .input = "one\ntwo\n"});

  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.out(), HasSubstr("[0]<stdout>:2\n"));
  EXPECT_THAT(job.out(), HasSubstr("[1]<stdout>:0\n"));
}

TEST_F(LaunchHosts, AllRanksGetOneKeyThatNobodyElseSees) {
  LaunchedJob job(shell_on("localhost:1,far:1", 2,
                           "od -An -tx1 /proc/self/fd/$HOROVOD_KEY_FD | tr -d ' \\n'; echo; env; "
                           "cat /proc/$PPID/cmdline /proc/$PPID/environ | tr '\\0' '\\n'"),
                  {.environment = stub_.environment()});

  ASSERT_EQ(job.wait(), 0) << job.err();
  const size_t at = job.out().find("<stdout>:") + 9;
  const std::string key = job.out().substr(at, 64);
  EXPECT_THAT(key, ContainsRegex("^[0-9a-f]{64}$"));
  EXPECT_EQ(LaunchedJob::occurrences(job.out(), key), 2) << "each rank printed it, nothing else";
}

TEST_F(LaunchHosts, SeveralHostsGetTheAddressesOfAStoreThatListens) {
  LaunchedJob job(
      {"-np", "2", "-H", "localhost:1,far:1", "bash", "-c",
       "a=${HOROVOD_STORE_ADDRESSES%%,*}; exec 3<>/dev/tcp/${a%:*}/${a##*:} && echo up"},
      {.environment = stub_.environment()});

  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_EQ(LaunchedJob::occurrences(job.out(), "up\n"), 2);
}

TEST_F(LaunchHosts, AFailureOnAnotherHostIsNamedAndEndsTheRest) {
  for (const char* gate : {"gate0", "gate2"}) {
    ASSERT_EQ(::mkfifo((directory_ / gate).c_str(), 0600), 0);
  }
  LaunchedJob job(
      shell_on("localhost:1,far:1,away:1", 3,
               "gate=" + (directory_ / "gate") +
                   "; if [ $HOROVOD_RANK = 1 ]; then read go < ${gate}0; read go < ${gate}2; "
                   "echo why >&2; exit 3; fi; sleep 1000 & echo child $!; echo pid $$; "
                   "echo go > $gate$HOROVOD_RANK; wait"),
      {.environment = stub_.environment()});
  ASSERT_TRUE(job.wait_for("pid ", 2));
  expect_all_to_end(job, 4);

  EXPECT_EQ(job.wait(), 3);
  check_all_ended();
  EXPECT_LT(job.took(), seconds(5)) << "nobody needed the grace";
  EXPECT_THAT(job.err(), HasSubstr("    [1]<stderr>:why\n"));
  EXPECT_THAT(last_line(job.err()), ContainsRegex("rank 1 \\(pid [0-9]+, host far\\) failed first: "
                                                  "exited with code 3 after .*; the other 2 ranks "
                                                  "were ended"));
}

TEST_F(LaunchHosts, TheRankThatWasKilledIsNamedNotTheOneThatNoticed) {
  ASSERT_EQ(::mkfifo((directory_ / "gate").c_str(), 0600), 0);
  // Rank 0 fails when rank 1, on another host, breaks off, as an engine does that loses a peer.
  const std::string script = "gate=" + (directory_ / "gate") +
                             "; if [ $HOROVOD_RANK = 1 ]; then exec 3> $gate; kill -9 $$; fi; "
                             "read line < $gate; exit 1";
  for (int round = 0; round < 5; ++round) {
    LaunchedJob job(shell_on("localhost:1,far:1", 2, script), {.environment = stub_.environment()});

    EXPECT_EQ(job.wait(), 137);
    EXPECT_THAT(last_line(job.err()), ContainsRegex("rank 1 .pid [0-9]+, host far. failed first: "
                                                    "killed by signal 9"));
  }
}

TEST_F(LaunchHosts, SignalsEndTheRanksOfAllHostsWithinTwoSeconds) {
  for (int number : {SIGINT, SIGTERM}) {
    LaunchedJob job(shell_on("localhost:1,far:1,away:1", 3, kObedient),
                    {.environment = stub_.environment()});
    ASSERT_TRUE(job.wait_for("pid ", 3));
    expect_all_to_end(job, 6);
    const auto asked_at = std::chrono::steady_clock::now();

    job.send(number);

    EXPECT_EQ(job.wait(), 128 + number);
    EXPECT_LT(std::chrono::steady_clock::now() - asked_at, seconds(2));
    check_all_ended();
    EXPECT_THAT(last_line(job.err()), EndsWith("3 ranks were ended"));
  }
}

TEST_F(LaunchHosts, RanksThatIgnoreTheSignalAreKilledAfterTheGrace) {
  LaunchedJob job(shell_on("localhost:1,far:1", 2, kStubborn),
                  {.environment = stub_.environment({"HOROVOD_TERMINATION_GRACE_SECONDS=0.5"})});
  ASSERT_TRUE(job.wait_for("pid ", 2));
  expect_all_to_end(job, 4);

  job.send(SIGTERM);

  EXPECT_EQ(job.wait(), 128 + SIGTERM);
  check_all_ended();
  EXPECT_THAT(last_line(job.err()), EndsWith("2 ranks had to be killed"));
}

TEST_F(LaunchHosts, ASecondSignalKillsEverywhere) {
  LaunchedJob job(shell_on("localhost:1,far:1", 2, kStubborn),
                  {.environment = stub_.environment({"HOROVOD_TERMINATION_GRACE_SECONDS=1000"})});
  ASSERT_TRUE(job.wait_for("pid ", 2));
  expect_all_to_end(job, 4);

  for (int presses = 0; presses < 100 && !job.has_ended_within(milliseconds(100)); ++presses) {
    job.send(SIGINT);
  }

  EXPECT_EQ(job.wait(), 130);
  check_all_ended();
}

TEST_F(LaunchHosts, KillingTheLauncherEndsTheRanksOfOtherHosts) {
  LaunchedJob job(shell_on("far:1,away:1", 2, kStubborn),
                  {.environment = stub_.environment({"HOROVOD_TERMINATION_GRACE_SECONDS=0.2"})});
  ASSERT_TRUE(job.wait_for("pid ", 2));
  expect_all_to_end(job, 4);

  job.send(SIGKILL);

  EXPECT_EQ(job.wait(), 1000 + SIGKILL);
  check_all_ended();
}

TEST_F(LaunchHosts, AHostWhoseAgentDiesIsNamed) {
  LaunchedJob job(shell_on("localhost:1,far:1", 2,
                           "[ $HOROVOD_RANK = 0 ] || echo agent $PPID.; " + std::string(kStubborn)),
                  {.environment = stub_.environment({"HOROVOD_TERMINATION_GRACE_SECONDS=0.2"})});
  ASSERT_TRUE(job.wait_for("pid ", 2));
  expect_all_to_end(job, 4);

  ::kill(job.numbers_after("agent ").at(0), SIGKILL);

  EXPECT_EQ(job.wait(), 125);
  check_all_ended();
  EXPECT_THAT(last_line(job.err()),
              ContainsRegex("host far with rank 1 was lost after .*: the connection was lost"));
}

TEST_F(LaunchHosts, TheLastLineNamesALostHostWhateverItsShellPrinted) {
  const std::string stub = directory_ / "ssh";
  std::ofstream(stub) << "#!/bin/sh\necho first >&2\necho second >&2\nexec sh -c \"$2\"\n";
  std::filesystem::permissions(stub, std::filesystem::perms::owner_all);
  LaunchedJob job(
      shell_on("localhost:1,far:1", 2,
               "[ $HOROVOD_RANK = 0 ] || echo agent $PPID.; " + std::string(kStubborn)),
      {.environment = {"HOROVOD_SSH_COMMAND=" + stub, "HOROVOD_TERMINATION_GRACE_SECONDS=0.2"}});
  ASSERT_TRUE(job.wait_for("pid ", 2));

  ::kill(job.numbers_after("agent ").at(0), SIGKILL);

  EXPECT_EQ(job.wait(), 125);
  EXPECT_THAT(last_line(job.err()),
              ContainsRegex("host far with rank 1 was lost after .*says: first; second"));
}

struct StartFailure {
  std::string hosts;
  std::string message;
  int code;
};

TEST_F(LaunchHosts, AHostThatDoesNotComeUpIsExplainedAndNothingStarts) {
  const std::vector<StartFailure> failures = {
      {"localhost:1,hang:1", "host hang did not come up: no answer within 1 s .--start-timeout.",
       125},
      {"localhost:1,nowhere:1",
       "host nowhere did not come up: .*ssh could not connect; .*says: ssh: Could not resolve "
       "hostname nowhere",
       125},
      {"localhost:1,bare:1",
       "host bare did not come up: horovodrun was not found there; install Horovod at the same "
       "path as here, or set HOROVOD_REMOTE_EXECUTABLE",
       125},
  };
  for (const StartFailure& failure : failures) {
    std::vector<std::string> arguments =
        shell_on(failure.hosts, 2, "touch " + (directory_ / "started"));
    arguments.insert(arguments.begin(), {"--start-timeout", "1"});
    LaunchedJob job(arguments, {.environment = stub_.environment()});

    EXPECT_EQ(job.wait(), failure.code);
    EXPECT_LT(job.took(), seconds(5));
    EXPECT_THAT(job.err(), ContainsRegex(failure.message));
    EXPECT_THAT(job.err(), EndsWith("nothing was started\n"));
    EXPECT_FALSE(std::filesystem::exists(directory_ / "started"));
  }
}

TEST_F(LaunchHosts, ACommandThatOnlyOneHostLacksStartsNowhere) {
  // Reaching the other host takes the program away, as if only that host lacked it.
  const std::string command = directory_ / "tool";
  std::ofstream(command) << "#!/bin/sh\ntouch " << (directory_ / "started") << "\n";
  std::filesystem::permissions(command, std::filesystem::perms::owner_all);
  const std::string stub = directory_ / "ssh";
  std::ofstream(stub) << "#!/bin/sh\nmv " << command << " " << command
                      << ".away\nexec sh -c \"$2\"\n";
  std::filesystem::permissions(stub, std::filesystem::perms::owner_all);
  LaunchedJob job({"-np", "2", "-H", "localhost:1,far:1", command},
                  {.environment = {"HOROVOD_SSH_COMMAND=" + stub}});

  EXPECT_EQ(job.wait(), 127);
  EXPECT_THAT(job.err(),
              HasSubstr("host far did not come up: command '" + command + "' not found"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "started"));
}

TEST_F(LaunchHosts, WhatALoginShellPrintsIsNotTakenForTheAgent) {
  LaunchedJob job(shell_on("noisy:1", 1, "echo works"), {.environment = stub_.environment()});

  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_EQ(job.out(), "[0]<stdout>:works\n");
}

// The key and the environment are not for a login shell that waits for commands.
TEST_F(LaunchHosts, NothingIsSentBeforeTheAgentHasSpoken) {
  const std::string heard = directory_ / "heard", script = directory_ / "impostor";
  std::ofstream(script) << "#!/bin/sh\necho Welcome\nexec 4>&1\nexec cat >" << heard << "\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);

  LaunchedJob job({"--start-timeout", "3", "-np", "1", "-H", "far:1", "true"},
                  {.environment = {"HOROVOD_SSH_COMMAND=" + script, "TOKEN=precious"}});

  EXPECT_NE(job.wait(), 0);
  EXPECT_THAT(job.err(), HasSubstr("no answer within 3 s"));
  EXPECT_EQ(std::filesystem::file_size(heard), 0u);
}

TEST_F(LaunchHosts, WordsOfAnotherHostDoNotReachTheTerminalAsCommands) {
  const std::string script = directory_ / "impostor";
  std::ofstream(script) << "#!/bin/sh\nprintf '\\033]0;owned\\007 broken' >&2\nexit 3\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);

  LaunchedJob job({"-np", "1", "-H", "far:1", "true"},
                  {.environment = {"HOROVOD_SSH_COMMAND=" + script}});

  EXPECT_NE(job.wait(), 0);
  EXPECT_THAT(job.err(), HasSubstr("\\x1b]0;owned\\x07 broken"));
  EXPECT_THAT(job.err(), Not(HasSubstr("\x1b]")));
}

TEST_F(LaunchHosts, TheAuditNamesThoseWhoJoined) {
  LaunchedJob job({"--verbose", "-np", "1", "-H", "far:1", "true"},
                  {.environment = stub_.environment()});
  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.err(), HasSubstr("horovodrun: audit: one host, no port was open"));
}

TEST_F(LaunchHosts, ControlCWhileHostsComeUpEndsAtOnce) {
  LaunchedJob job(shell_on("hang:1", 1, "true"), {.environment = stub_.environment()});
  // The stub's name is in its arguments once it runs; before, the signal ends us all the same.
  job.send(SIGINT);

  const int code = job.wait();
  EXPECT_TRUE(code == 130 || code == 1000 + SIGINT) << code << job.err();
  EXPECT_LT(job.took(), seconds(10));
}

TEST_F(LaunchHosts, ThePlanIsPrintedAsJsonWithoutTheKey) {
  LaunchedJob job({"--plan-json", "-np", "3", "-H", "localhost:1,far:2", "--cycle-time-ms", "2",
                   "python", "train \"x\".py"},
                  {.environment = stub_.environment()});

  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.out(), HasSubstr("\"launcher\": \"horovodrun\""));
  EXPECT_THAT(job.out(), HasSubstr("\"command\": [\"python\", \"train \\\"x\\\".py\"]"));
  EXPECT_THAT(job.out(), HasSubstr("\"flag_environment\": {\"HOROVOD_CYCLE_TIME\": \"2.0\"}"));
  EXPECT_THAT(job.out(), HasSubstr("{\"name\": \"far\", \"slots\": 2, \"local\": false, \"ranks\": "
                                   "[1, 2], \"agent_command\": [\"" +
                                   stub_.path() + "\", \"far\", \"exec "));
  EXPECT_THAT(job.out(),
              HasSubstr("\"rank\": 2, \"size\": 3, \"local_rank\": 1, \"local_size\": 2"));
  EXPECT_THAT(job.out(), Not(HasSubstr("HOROVOD_KEY_FD")));
}

TEST(LaunchColours, LabelsAreColouredOnATerminalOnly) {
  LaunchedJob job({"-np", "1", "echo", "plain"}, {.environment = {"TERM=xterm"}});

  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(job.out(), "[0]<stdout>:plain\n");
}

}  // namespace
}  // namespace hvd::test
