// Whom the last line of horovodrun blames: the rank that failed first, not the first that noticed.
#include "launch/job/culprit.h"

#include <gtest/gtest.h>

#include <csignal>
#include <ostream>
#include <string>
#include <vector>

namespace hvd::launch {

void PrintTo(const Culprit& culprit, std::ostream* out) {
  *out << "rank " << culprit.rank << ", exit code " << culprit.exit_code << ", reason '"
       << culprit.reason << "', witness " << culprit.witness.value_or(-1);
}

namespace {

constexpr ExitStatus kLeftWith0{};
constexpr ExitStatus kCode1{.code = 1};
constexpr ExitStatus kLeftWith3{.code = 3};
constexpr ExitStatus kKilled{.signal = SIGKILL};
constexpr ExitStatus kTerminated{.signal = SIGTERM};
constexpr ExitStatus kAborted{.signal = SIGABRT};

FailureNote lost(int32_t rank) {
  return {.rank = rank,
          .code = StatusCode::kPeerLost,
          .text = "rank " + std::to_string(rank) + " (pid 7, host h) gives no sign (of life)"};
}
const FailureNote kInVain{.rank = -1,
                          .code = StatusCode::kTimedOut,
                          .text = "rendezvous: timed out waiting for rank 2 of 3"};

FailureNote left(int32_t rank) {
  return {.rank = rank, .code = StatusCode::kShutDown, .text = "Horovod has been shut down. ..."};
}

RankEnd ended(const ExitStatus& status) { return {.status = status}; }
RankEnd failed_because(const FailureNote& note) { return {.status = kCode1, .note = note}; }
RankEnd asked(const ExitStatus& status) { return {.status = status, .was_asked = true}; }

struct CulpritCase {
  std::string what;
  std::vector<RankEnd> ends;
  Culprit expected;
  int32_t seen_first = 0;
};

const std::vector<CulpritCase> kCases = {
    {"a rank that nobody accuses failed by itself",
     {ended(kLeftWith3), asked(kTerminated)},
     {.rank = 0, .exit_code = 3}},
    {"a killed rank",
     {failed_because(lost(1)), ended(kKilled), asked(kTerminated)},
     {.rank = 1, .exit_code = 137}},
    {"a rank that exited with a code, seen after those who noticed",
     {failed_because(lost(1)), ended(kLeftWith3), failed_because(lost(1))},
     {.rank = 1, .exit_code = 3}},
    {"a rank that exited with 0 in the middle of the job",
     {failed_because(lost(1)), ended(kLeftWith0), asked(kTerminated)},
     {.rank = 1, .exit_code = 1, .witness = 0}},
    {"a rank that shut down and exited with 0 in the middle of the job",
     {failed_because(left(1)), ended(kLeftWith0)},
     {.rank = 1, .exit_code = 1, .witness = 0}},
    {"a rank that shut down and was about to exit with a code",
     {failed_because(left(1)), asked(kLeftWith3)},
     {.rank = 1, .exit_code = 3}},
    {"a rank that shut down and went on",
     {failed_because(left(1)), asked(kTerminated)},
     {.rank = 1, .exit_code = 1, .reason = "shut down while others waited for it", .witness = 0}},
    {"a frozen rank, which ended when it was asked",
     {failed_because(lost(1)), asked(kTerminated), failed_because(lost(1))},
     {.rank = 1, .exit_code = 1, .reason = "gives no sign (of life)", .witness = 0}},
    {"a frozen rank, whose own words on the way out do not count",
     {failed_because(lost(1)), asked(kLeftWith3)},
     {.rank = 1, .exit_code = 1, .reason = "gives no sign (of life)", .witness = 0}},
    {"a frozen rank that could not be ended",
     {failed_because(lost(1)), {}},
     {.rank = 1, .exit_code = 1, .reason = "gives no sign (of life)", .witness = 0}},
    {"a rank that died of what another one did",
     {{.status = kAborted, .note = lost(2)}, failed_because(lost(2)), ended(kLeftWith0)},
     {.rank = 2, .exit_code = 134, .witness = 0},
     1},
    {"from note to note",
     {failed_because(lost(1)), failed_because(left(2)), ended(kLeftWith0)},
     {.rank = 2, .exit_code = 1, .witness = 1}},
    {"a rank that accuses itself",
     {failed_because(lost(0)), asked(kTerminated)},
     {.rank = 0, .exit_code = 1}},
    {"ranks that accuse each other: the one that was seen first",
     {failed_because(lost(1)), failed_because(lost(0))},
     {.rank = 1, .exit_code = 1},
     1},
    {"a rank that exited with 0 while others waited for it in init",
     {failed_because(kInVain), failed_because(kInVain), ended(kLeftWith0)},
     {.rank = 2, .exit_code = 1, .witness = 0}},
    {"ranks that waited in init for one that is still there",
     {failed_because(kInVain), failed_because(kInVain), asked(kTerminated)},
     {.rank = 0, .exit_code = 1}},
    {"ranks that waited in init for several",
     {failed_because(kInVain), ended(kLeftWith0), ended(kLeftWith0)},
     {.rank = 0, .exit_code = 1}},
    {"a note that names no rank of the job",
     {failed_because(lost(7)), failed_because(lost(-1))},
     {.rank = 0, .exit_code = 1}},
    {"a note without a text",
     {failed_because({.rank = 1, .code = StatusCode::kPeerLost}), asked(kTerminated)},
     {.rank = 1, .exit_code = 1, .reason = "was lost", .witness = 0}},
    {"only the first line of a long explanation",
     {failed_because({.rank = 1, .code = StatusCode::kCorrupted, .text = "a word\nof many"}),
      asked(kTerminated)},
     {.rank = 1, .exit_code = 1, .reason = "a word", .witness = 0}},
    {"a rank that others waited for in vain",
     {failed_because({.rank = 1, .code = StatusCode::kStalled, .text = "the limit\n1: [x]"}),
      asked(kTerminated)},
     {.rank = 1,
      .exit_code = 1,
      .reason = "others waited for it until the stall limit (HOROVOD_STALL_SHUTDOWN_TIME_SECONDS)",
      .witness = 0}},
};

TEST(LaunchCulprit, IsTheRankThatFailedFirstNotTheFirstThatNoticed) {
  for (const CulpritCase& c : kCases) {
    EXPECT_EQ(find_culprit(c.seen_first, c.ends), c.expected) << c.what;
  }
}

TEST(LaunchCulprit, IsWaitedForIfItSaidThatItLeaves) {
  using Ends = std::vector<RankEnd>;

  EXPECT_TRUE(is_leaver_awaited(0, Ends{failed_because(left(1)), {}}));
  EXPECT_TRUE(is_leaver_awaited(0, Ends{failed_because(lost(1)), failed_because(left(2)), {}}));
  EXPECT_FALSE(is_leaver_awaited(0, Ends{failed_because(left(1)), ended(kLeftWith0)}));
  EXPECT_FALSE(is_leaver_awaited(0, Ends{failed_because(lost(1)), {}})) << "frozen";
  EXPECT_FALSE(is_leaver_awaited(0, Ends{ended(kLeftWith3), {}}));
}

}  // namespace
}  // namespace hvd::launch
