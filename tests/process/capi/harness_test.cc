// The harness itself: a test over processes is worth nothing if a failing child can pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>

#include "tests/support/process_ranks.h"
#include "tests/support/reference.h"

namespace hvd::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

ProcessOptions without_library(milliseconds deadline = seconds(20)) {
  ProcessOptions options;
  options.init = ProcessOptions::Init::kByFunction;
  options.deadline = deadline;
  return options;
}

// All problems of a run, as run_processes would report them.
std::string problems_of(int np, const std::function<void(RankProcess&)>& function,
                        const ProcessOptions& options) {
  std::string text;
  const auto outcomes = observe_processes(np, function, options);
  for (int r = 0; r < np; ++r) text += problem_of(r, outcomes[static_cast<size_t>(r)], options);
  return text;
}

TEST(CapiHarness, AFailedExpectationOfAChildIsReportedWithItsText) {
  const auto text = problems_of(
      3, [](RankProcess& rank) { EXPECT_NE(rank.rank(), 1) << "said by the child"; },
      without_library());

  EXPECT_THAT(text, HasSubstr("rank 1 exited with 1"));
  EXPECT_THAT(text, HasSubstr("said by the child"));
  EXPECT_THAT(text, Not(HasSubstr("rank 2")));
}

TEST(CapiHarness, AnAssertionEndsTheChildFromAnyDepth) {
  const auto text = problems_of(
      1,
      [](RankProcess& rank) {
        const auto inner = [] { ASSERT_TRUE(false) << "inner assertion"; };
        inner();
        rank.phase("never reached");
      },
      without_library());

  EXPECT_THAT(text, HasSubstr("inner assertion"));
  EXPECT_THAT(text, Not(HasSubstr("never reached")));
}

TEST(CapiHarness, AnExceptionIsAFailure) {
  EXPECT_THAT(problems_of(
                  1, [](RankProcess&) { throw std::runtime_error("thrown"); }, without_library()),
              HasSubstr("thrown"));
}

TEST(CapiHarness, AHangingChildIsKilledAndItsPhaseNamed) {
  const auto text = problems_of(
      2,
      [](RankProcess& rank) {
        rank.phase("thinking about " + std::to_string(rank.rank()));
        if (rank.rank() == 1) ::pause();
      },
      without_library(milliseconds(300 / kTimeFactor)));

  EXPECT_THAT(text, HasSubstr("rank 1 did not finish within"));
  EXPECT_THAT(text, HasSubstr("thinking about 1"));
}

TEST(CapiHarness, AnUnexpectedSignalIsAFailureAndAnExpectedOneIsNot) {
  const auto die = [](RankProcess&) { ::raise(SIGKILL); };
  EXPECT_THAT(problems_of(1, die, without_library()), HasSubstr("ended by signal 9"));
  ProcessOptions options = without_library();
  options.expected_signals = {{0, SIGKILL}};
  EXPECT_EQ(problems_of(1, die, options), "");
}

TEST(CapiHarness, ARankThatShouldDieAndDoesNotIsAFailure) {
  ProcessOptions options = without_library();
  options.expected_signals = {{0, SIGKILL}};
  EXPECT_NE(problems_of(
                1, [](RankProcess&) {}, options),
            "");
}

TEST(CapiHarness, StandardErrorAndTheBoardReachTheParent) {
  ProcessOptions options = without_library();
  options.supervise = [](Supervisor& supervisor) {
    EXPECT_TRUE(supervisor.board().wait_at_least(0, 2, seconds(10)));
    EXPECT_FALSE(supervisor.board().wait_at_least(1, 1, milliseconds(10)));
    supervisor.board().set(2, 1);
  };
  const auto outcomes = run_processes(
      2,
      [](RankProcess& rank) {
        std::fprintf(stderr, "text of %d", rank.rank());
        rank.board().add(0, 1);
        EXPECT_TRUE(rank.board().wait_at_least(2, 1, seconds(10)));
      },
      options);
  EXPECT_EQ(outcomes[1].stderr_text, "text of 1");
}

TEST(CapiHarness, AStoppedChildIsSeenAsStoppedAndGoesOn) {
  ProcessOptions options = without_library();
  options.supervise = [](Supervisor& supervisor) {
    supervisor.stop(0);
    supervisor.board().set(0, 1);
    supervisor.resume(0);
  };
  run_processes(
      1, [](RankProcess& rank) { EXPECT_TRUE(rank.board().wait_at_least(0, 1, seconds(10))); },
      options);
}

// Values worked out by hand, so that reference and library cannot share a mistake.
TEST(CapiReference, AgreesWithHandComputedValues) {
  const auto bytes = [](auto... values) {
    Bytes all;
    const auto add = [&all](auto value) {
      all.resize(all.size() + sizeof(value));
      std::memcpy(all.data() + all.size() - sizeof(value), &value, sizeof(value));
    };
    (add(values), ...);
    return all;
  };
  EXPECT_EQ(
      reference_allreduce({.dtype = HVD_INT32, .op = HVD_OP_AVERAGE}, {bytes(-3, 7), bytes(-4, 4)}),
      bytes(-3, 5));
  EXPECT_EQ(reference_allreduce({.dtype = HVD_FLOAT32, .op = HVD_OP_SUM, .prescale = 2},
                                {bytes(1.5f), bytes(2.5f)}),
            bytes(8.0f));
  // float16 1.0 + 2^-11 (half a unit) stays 1.0; twice half a unit, accumulated in float32, does
  // not.
  const uint16_t one = 0x3c00, half_unit = 0x1000, next = 0x3c01;
  EXPECT_EQ(reference_allreduce({.dtype = HVD_FLOAT16}, {bytes(one), bytes(half_unit)}),
            bytes(one));
  EXPECT_EQ(
      reference_allreduce({.dtype = HVD_FLOAT16}, {bytes(one), bytes(half_unit), bytes(half_unit)}),
      bytes(next));
  EXPECT_EQ(reference_allreduce({.dtype = HVD_BOOL, .op = HVD_OP_PRODUCT},
                                {bytes(uint8_t{1}, uint8_t{1}), bytes(uint8_t{1}, uint8_t{0})}),
            bytes(uint8_t{1}, uint8_t{0}));
  EXPECT_EQ(reference_allreduce({.dtype = HVD_FLOAT64, .op = HVD_OP_ADASUM},
                                {bytes(1.0, 0.0), bytes(1.0, 1.0)}),
            bytes(0.5 + 0.75, 0.75));
  EXPECT_EQ(reference_scatter_rows(11, 4), (std::vector<int64_t>{3, 3, 3, 2}));
  EXPECT_EQ(reference_alltoall({bytes(1, 2, 3), bytes(4, 5)}, {{2, 1}, {0, 2}}, 4, 1),
            bytes(3, 4, 5));
}

}  // namespace
}  // namespace hvd::testing
