// How a job under horovodrun ends: failures, signals, a killed launcher, Ctrl-C at a terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sched.h>
#include <sys/stat.h>

#include "tests/process/launched_job.h"
#include "tests/process/remote_stub.h"

namespace hvd::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// Rank 1 fails as soon as rank 0 has written to the pipe `gate`.
class LaunchEnd : public ::testing::Test {
 protected:
  LaunchEnd() { EXPECT_EQ(::mkfifo((directory_ / "gate").c_str(), 0600), 0); }

  std::string fail_after_rank_zero(const std::string& rank_zero, const std::string& failure) const {
    return "gate=" + (directory_ / "gate") + "; if [ $HOROVOD_RANK = 1 ]; then read go < $gate; " +
           failure + "; fi; " + rank_zero;
  }

  TemporaryDirectory directory_;
};

TEST_F(LaunchEnd, AFailingRankEndsTheOthersAndTheirChildren) {
  LaunchedJob job(
      shell(2, fail_after_rank_zero("sleep 1000 & echo child $!; echo pid $$; echo go > $gate; "
                                    "wait",
                                    "sleep 1000 & echo child $!; echo why >&2; exit 3")));
  ASSERT_TRUE(job.wait_for("child ", 2));
  std::vector<ProcessWatch> children;
  for (pid_t pid : job.numbers_after("child ")) children.emplace_back(pid);

  EXPECT_EQ(job.wait(), 3);
  for (const ProcessWatch& child : children) EXPECT_TRUE(!child.is_valid() || child.ends());
  EXPECT_LT(job.took(), seconds(5)) << "nobody needed the grace";
  EXPECT_THAT(job.err(), HasSubstr("one or more processes exited with non-zero status"));
  EXPECT_THAT(job.err(), HasSubstr("last lines of rank 1:\n"));
  EXPECT_THAT(job.err(), HasSubstr("    [1]<stderr>:why\n"));
  EXPECT_THAT(last_line(job.err()), HasSubstr("failed first: exited with code 3 after "));
  EXPECT_THAT(last_line(job.err()), EndsWith("; the other 1 rank was ended"));
}

TEST_F(LaunchEnd, TheRankThatWasKilledIsNamedNotTheOneThatNoticed) {
  // Rank 0 reads from rank 1 and fails when that breaks off, as an engine does that loses a peer.
  const std::string script = "gate=" + (directory_ / "gate") +
                             "; if [ $HOROVOD_RANK = 1 ]; then exec 3> $gate; kill -9 $$; fi; "
                             "read line < $gate; exit 1";
  for (int round = 0; round < 10; ++round) {
    LaunchedJob job(shell(2, script));

    EXPECT_EQ(job.wait(), 137);
    EXPECT_THAT(last_line(job.err()), HasSubstr("horovodrun: rank 1 (pid "));
    EXPECT_THAT(last_line(job.err()), HasSubstr("killed by signal 9 (Killed)"));
  }
}

TEST_F(LaunchEnd, ARankThatIgnoresTheRequestIsKilledAfterTheGrace) {
  LaunchedJob job(
      shell(2, fail_after_rank_zero("trap '' TERM; sleep 1000 & echo child $!; echo go > $gate; "
                                    "while :; do wait; done",
                                    "exit 4")),
      {.environment = {"HOROVOD_TERMINATION_GRACE_SECONDS=0.5"}});
  ASSERT_TRUE(job.wait_for("child "));
  const ProcessWatch child(job.numbers_after("child ").at(0));

  EXPECT_EQ(job.wait(), 4);
  EXPECT_TRUE(child.ends());
  EXPECT_GE(job.took(), milliseconds(500));
  EXPECT_THAT(last_line(job.err()), EndsWith("; the other 1 rank had to be killed"));
}

TEST_F(LaunchEnd, TheGraceBelongsToTheWholeGroupNotOnlyToItsLeader) {
  // The shell dies at once of SIGTERM; what it started takes its time to save.
  LaunchedJob job(
      shell(2, fail_after_rank_zero("(sleep 1000 & trap 'sleep 0.5; echo saved; exit 0' TERM; "
                                    "echo go > $gate; wait) & wait",
                                    "exit 5")));

  EXPECT_EQ(job.wait(), 5);
  EXPECT_THAT(job.out(), HasSubstr("[0]<stdout>:saved\n"));
}

TEST_F(LaunchEnd, AStoppedRankEndsToo) {
  LaunchedJob job(
      shell(2, fail_after_rank_zero("(kill -STOP $$; echo go > $gate) & wait", "exit 6")));

  EXPECT_EQ(job.wait(), 6);
  EXPECT_LT(job.took(), seconds(5));
}

TEST_F(LaunchEnd, SignalsEndTheJobAndShowInTheExitCode) {
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    LaunchedJob job(shell(2, "sleep 1000 & trap 'echo asked; exit 0' TERM; echo ready; wait"));
    ASSERT_TRUE(job.wait_for("ready", 2));

    job.send(number);

    EXPECT_EQ(job.wait(), 128 + number);
    EXPECT_LT(job.took(), seconds(4)) << "nobody needed the grace";
    EXPECT_EQ(LaunchedJob::occurrences(job.out(), "asked\n"), 2);
    EXPECT_THAT(last_line(job.err()),
                ContainsRegex("ended by signal .* after .*; 2 ranks were ended$"));
    EXPECT_THAT(job.err(), Not(HasSubstr("failed first")));
  }
}

TEST_F(LaunchEnd, ASecondSignalKillsAtOnce) {
  LaunchedJob job(
      shell(2, "trap 'echo asked' TERM; echo ready; while :; do sleep 1000 & wait; done"),
      {.environment = {"HOROVOD_TERMINATION_GRACE_SECONDS=1000"}});
  ASSERT_TRUE(job.wait_for("ready", 2));

  job.send(SIGINT);
  ASSERT_TRUE(job.wait_for("asked", 2));
  // Signals in quick succession count as one: press until it is taken as a second one.
  for (int presses = 0; presses < 100 && !job.has_ended_within(milliseconds(100)); ++presses) {
    job.send(SIGINT);
  }

  EXPECT_EQ(job.wait(), 130);
  EXPECT_THAT(last_line(job.err()), EndsWith("2 ranks had to be killed"));
}

TEST_F(LaunchEnd, KillingTheLauncherKillsWorkersAndTheirChildren) {
  LaunchedJob job(
      shell(2,
            "trap '' TERM HUP INT; sleep 1000 & echo child $!; echo pid $$; while :; do wait; "
            "done"));
  ASSERT_TRUE(job.wait_for("pid ", 2));
  std::vector<ProcessWatch> watches;
  for (const char* word : {"child ", "pid "}) {
    for (pid_t pid : job.numbers_after(word)) watches.emplace_back(pid);
  }
  ASSERT_EQ(watches.size(), 4U);

  job.send(SIGKILL);

  EXPECT_EQ(job.wait(), 1000 + SIGKILL);
  for (const ProcessWatch& watch : watches) EXPECT_TRUE(watch.ends());
}

TEST_F(LaunchEnd, AProcessLeftBehindDoesNotKeepTheLauncher) {
  LaunchedJob job(shell(2, "sleep 1000 & echo child $!; printf 'last words'"));

  EXPECT_EQ(job.wait(), 0);
  EXPECT_LT(job.took(), seconds(20));
  EXPECT_EQ(LaunchedJob::occurrences(job.out(), "last words\n"), 2);
  for (pid_t pid : job.numbers_after("child ")) {
    const ProcessWatch left(pid);
    EXPECT_FALSE(left.ends_within(milliseconds(0))) << "a rank that ended well keeps what it left";
    left.send(SIGKILL);
  }
}

class LaunchTerminal : public ::testing::Test {
 protected:
  void start(std::vector<std::string> arguments,
             const std::vector<std::string>& environment = {"NO_COLOR=1"}) {
    arguments.insert(arguments.begin(), launcher_path());
    int master = -1;
    pid_ = ::forkpty(&master, nullptr, nullptr, nullptr);
    if (pid_ == 0) LaunchedJob::execute(arguments, environment);
    master_.reset(master);
  }
  void type(std::string_view keys) const {
    EXPECT_EQ(::write(master_.get(), keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  void expect_screen(std::string_view text) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (screen_.find(text) == std::string::npos) {
      pollfd watch{master_.get(), POLLIN, 0};
      std::array<char, 4096> buffer;
      ASSERT_EQ(::poll(&watch, 1, poll_milliseconds(deadline)), 1) << screen_;
      const ssize_t count = ::read(master_.get(), buffer.data(), buffer.size());
      ASSERT_GT(count, 0) << screen_;
      screen_.append(buffer.data(), static_cast<size_t>(count));
    }
  }
  // No event tells about somebody else's child, so this looks until it is so.
  static void expect_stopped(const std::string& process) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (contents("/proc/" + process + "/stat").find(") T ") == std::string::npos) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << process << " is not stopped";
      ::sched_yield();
    }
  }
  int exit_code() const {
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }

  pid_t pid_ = -1;
  UniqueFd master_;
  std::string screen_;
};

TEST_F(LaunchTerminal, RankZeroReadsWhatIsTyped) {
  start(shell(2, "read line; echo got $line"));

  type("hello\n");

  expect_screen("[0]<stdout>:got hello");
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(LaunchTerminal, LabelsAreColouredUnlessNobodyWantsThem) {
  start(shell(1, "echo colour; exit 3"), {"TERM=xterm", "NO_COLOR="});

  expect_screen("\x1b[36m[0]<stdout>:\x1b[0mcolour");
  expect_screen("    [0]<stdout>:colour");  // the report is plain
  EXPECT_EQ(exit_code(), 3);
}

TEST_F(LaunchTerminal, HostsThatTakeTheirTimeAreNamedMeanwhile) {
  const RemoteStub stub;
  std::vector<std::string> arguments = shell_on("localhost:1,hang:1", 2, "true");
  arguments.insert(arguments.begin(), {"--start-timeout", "2"});
  start(arguments, stub.environment());

  expect_screen("horovodrun: 0 of 1 hosts are up, waiting for hang");
  expect_screen("host hang did not come up");
  EXPECT_EQ(exit_code(), 125);
}

TEST_F(LaunchTerminal, ControlCEndsTheJob) {
  start(shell(2, "echo ready; sleep 1000"));
  expect_screen("[0]<stdout>:ready");
  expect_screen("[1]<stdout>:ready");

  type("\003");

  expect_screen("ended by signal 2 (Interrupt)");
  EXPECT_EQ(exit_code(), 130);
}

TEST_F(LaunchTerminal, ControlZStopsTheWorkersUntilTheJobGoesOn) {
  start(shell(1, "echo pid $$.; read line; echo got $line"));
  expect_screen("[0]<stdout>:pid ");
  expect_screen(".");

  type("\032");
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED), 0);
  EXPECT_EQ(info.si_code, CLD_STOPPED);
  const size_t number = screen_.find("pid ") + 4;
  expect_stopped(screen_.substr(number, screen_.find('.') - number));
  ::kill(pid_, SIGCONT);
  type("on\n");

  expect_screen("[0]<stdout>:got on");
  EXPECT_EQ(exit_code(), 0);
}

}  // namespace
}  // namespace hvd::test
