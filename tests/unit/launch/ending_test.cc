// Who failed first, when workers are asked to end, and what is said about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "launch/job/report.h"
#include "launch/os/exit_status.h"
#include "launch/os/process_state.h"
#include "launch/ranks/termination.h"

namespace hvd::launch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr ExitStatus kOk{};
constexpr ExitStatus kCode3{.code = 3};
constexpr ExitStatus kKilledBy9{.signal = SIGKILL};
const TimePoint kStart{seconds(1000)};

TEST(LaunchExitStatus, BecomesAnExitCode) {
  EXPECT_EQ(exit_code_of(kOk), 0);
  EXPECT_EQ(exit_code_of(kCode3), 3);
  EXPECT_EQ(exit_code_of(kKilledBy9), 137);
  EXPECT_EQ(exit_code_of_exec_error(ENOENT), 127);
  EXPECT_EQ(exit_code_of_exec_error(E2BIG), 126);
}

TEST(LaunchExitStatus, IsDescribed) {
  EXPECT_EQ(describe(kCode3), "exited with code 3");
  EXPECT_EQ(describe(kKilledBy9), "killed by signal 9 (Killed)");
  EXPECT_EQ(describe({.signal = SIGSEGV, .core_dumped = true}),
            "killed by signal 11 (Segmentation fault), core dumped");
  EXPECT_EQ(describe({.code = 127, .exec_error = ENOENT}),
            "could not be started: No such file or directory");
}

TEST(LaunchFirstFailure, IsADeathBySignalThenTheOneAnnouncedThenTheLowestRank) {
  using Exits = std::vector<RankExit>;

  EXPECT_EQ(first_failure(Exits{{0, kCode3}, {2, kKilledBy9}, {1, kKilledBy9}}, {}), 1);
  EXPECT_EQ(first_failure(Exits{{0, kCode3}, {1, kKilledBy9}, {2, kKilledBy9}}, 2), 2);
  EXPECT_EQ(first_failure(Exits{{0, kCode3}, {1, kKilledBy9}}, 0), 1);
  EXPECT_EQ(first_failure(Exits{{0, kCode3}, {1, kCode3}, {2, kCode3}}, 1), 1);
  EXPECT_EQ(first_failure(Exits{{2, kCode3}, {1, kCode3}}, {}), 1);
}

TEST(LaunchFirstFailure, IsNeverASuccess) {
  EXPECT_EQ(first_failure(std::vector<RankExit>{{0, kOk}, {1, kCode3}}, 0), 1);
  EXPECT_EQ(first_failure(std::vector<RankExit>{{0, kOk}}, 0), std::nullopt);
  EXPECT_EQ(first_failure({}, {}), std::nullopt);
}

TEST(LaunchFirstFailure, ARankThatWasDyingAlreadyByASignalIsTheCause) {
  const RankExit seen{0, kCode3};

  EXPECT_EQ(settle_first_failure(seen, {}).rank, 0);
  EXPECT_EQ(
      settle_first_failure(seen, std::vector<RankExit>{{3, kKilledBy9}, {2, kKilledBy9}}).rank, 2);
  EXPECT_EQ(settle_first_failure(seen, std::vector<RankExit>{{1, kCode3}, {2, kOk}}).rank, 0);
  EXPECT_EQ(settle_first_failure({1, kKilledBy9}, std::vector<RankExit>{{0, kKilledBy9}}).rank, 1);
}

TEST(LaunchProcessState, AnEndedProcessIsDyingAndWeAreNot) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);

  EXPECT_TRUE(is_dying(child));
  EXPECT_FALSE(is_dying(::getpid()));
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(is_dying(child));
}

TEST(LaunchProcessState, TheNameMayHoldAnything) {
  EXPECT_TRUE(is_dying_stat("7 (a) R 1 (b) ) R 1 2 3 4 5 4194564 9"));
  EXPECT_FALSE(is_dying_stat("7 (a) R 1 2 3 4 5 4194304 9"));
  EXPECT_FALSE(is_dying_stat("7 (a) R 1"));
  EXPECT_FALSE(is_dying_stat(""));
}

TEST(LaunchTermination, AFailureAsksThenKillsThenGivesUp) {
  Termination termination(seconds(5));

  EXPECT_EQ(termination.on_time(kStart), TerminationAction::kNone);
  EXPECT_EQ(termination.on_failure(kStart), TerminationAction::kSendTerminate);
  EXPECT_EQ(termination.on_failure(kStart), TerminationAction::kNone);
  EXPECT_EQ(termination.on_time(kStart + milliseconds(4999)), TerminationAction::kNone);
  EXPECT_EQ(termination.on_time(kStart + seconds(5)), TerminationAction::kSendKill);
  EXPECT_EQ(termination.on_time(kStart + seconds(14)), TerminationAction::kNone);
  EXPECT_EQ(termination.on_time(kStart + seconds(15)), TerminationAction::kGiveUp);
  EXPECT_TRUE(termination.deadline().is_never());
  EXPECT_EQ(termination.signal(), std::nullopt);
}

TEST(LaunchTermination, ASecondSignalKillsAtOnce) {
  Termination termination(seconds(5));

  EXPECT_EQ(termination.on_signal(SIGINT, kStart), TerminationAction::kSendTerminate);
  EXPECT_EQ(termination.on_signal(SIGINT, kStart + seconds(1)), TerminationAction::kSendKill);
  EXPECT_EQ(termination.on_signal(SIGINT, kStart + seconds(2)), TerminationAction::kNone);
  EXPECT_EQ(termination.signal(), SIGINT);
}

TEST(LaunchTermination, OneSignalDeliveredTwiceIsOneSignal) {
  Termination termination(seconds(5));

  EXPECT_EQ(termination.on_signal(SIGTERM, kStart), TerminationAction::kSendTerminate);
  EXPECT_EQ(termination.on_signal(SIGTERM, kStart + milliseconds(3)), TerminationAction::kNone);
}

TEST(LaunchTermination, ASignalDuringTheGraceAfterAFailureKillsAndTheFailureStaysTheCause) {
  Termination termination(seconds(5));

  EXPECT_EQ(termination.on_failure(kStart), TerminationAction::kSendTerminate);
  EXPECT_EQ(termination.on_signal(SIGINT, kStart + seconds(1)), TerminationAction::kSendKill);
  EXPECT_EQ(termination.signal(), std::nullopt);
}

TEST(LaunchReport, FateFollowsFromStatusAndStep) {
  EXPECT_EQ(fate_of(kOk, TerminationStep::kRunning), RankFate::kFinished);
  EXPECT_EQ(fate_of(kCode3, TerminationStep::kRunning), RankFate::kFailedToo);
  EXPECT_EQ(fate_of({.signal = SIGTERM}, TerminationStep::kTerminating), RankFate::kEnded);
  EXPECT_EQ(fate_of(kOk, TerminationStep::kTerminating), RankFate::kEnded);
  EXPECT_EQ(fate_of(kCode3, TerminationStep::kTerminating), RankFate::kFailedToo);
  EXPECT_EQ(fate_of(kKilledBy9, TerminationStep::kKilling), RankFate::kKilled);
}

FirstFailure failure() {
  return {.rank = 1,
          .pid = 4242,
          .host = "h1",
          .status = kKilledBy9,
          .after = milliseconds(3240),
          .last_lines = {"[1]<stderr>:oh", "[1]<stderr>:no"}};
}

TEST(LaunchReport, LastLineNamesTheFirstFailureAndWhatBecameOfTheOthers) {
  const std::string text = failure_report(failure(), std::vector{RankFate::kEnded});

  EXPECT_THAT(text,
              HasSubstr("Horovod detected that one or more processes exited with non-zero status"));
  EXPECT_THAT(text, HasSubstr("last lines of rank 1:\n    [1]<stderr>:oh\n    [1]<stderr>:no\n"));
  EXPECT_THAT(text,
              EndsWith("horovodrun: rank 1 (pid 4242, host h1) failed first: killed by signal 9 "
                       "(Killed) after 3.2 s; the other 1 rank was ended\n"));
}

TEST(LaunchReport, LastLineSaysWhoWaitedForTheRankOrHeardNothingFromIt) {
  FirstFailure left = failure();
  left.status = kOk;
  left.witness = 0;
  FirstFailure frozen = failure();
  frozen.status = {.signal = SIGTERM};
  frozen.reason = "gives no sign of life for 2 s";
  frozen.witness = 2;

  EXPECT_THAT(failure_report(left, {}),
              EndsWith("host h1) failed first: exited with code 0 after 3.2 s, while rank 0 waited "
                       "for it\n"));
  EXPECT_THAT(failure_report(frozen, std::vector{RankFate::kFailedToo}),
              EndsWith("host h1) failed first: gives no sign of life for 2 s (rank 2 says); the "
                       "other 1 rank failed too\n"));
}

TEST(LaunchReport, CountsTheFatesOfTheOthers) {
  const auto last = [](std::vector<RankFate> others) { return failure_report(failure(), others); };

  EXPECT_THAT(last({}), EndsWith("after 3.2 s\n"));
  EXPECT_THAT(last({RankFate::kEnded, RankFate::kEnded}),
              EndsWith("; the other 2 ranks were ended\n"));
  EXPECT_THAT(last({RankFate::kEnded, RankFate::kFinished, RankFate::kFailedToo, RankFate::kEnded}),
              EndsWith("; of the other 4 ranks 1 had finished, 1 failed too, 2 were ended\n"));
}

TEST(LaunchReport, SaysWhichSignalEndedTheJob) {
  EXPECT_EQ(signal_report(SIGINT, seconds(90), std::vector{RankFate::kEnded, RankFate::kKilled}),
            "horovodrun: ended by signal 2 (Interrupt) after 1 min 30 s; of 2 ranks 1 was ended, 1 "
            "had to "
            "be killed\n");
}

TEST(LaunchReport, SpansReadWell) {
  EXPECT_EQ(describe_span(milliseconds(7)), "7 ms");
  EXPECT_EQ(describe_span(milliseconds(59999)), "59.9 s");
  EXPECT_EQ(describe_span(seconds(61)), "1 min 1 s");
  EXPECT_EQ(describe_span(seconds(3600 * 26)), "26 h 0 min");
}

}  // namespace
}  // namespace hvd::launch
