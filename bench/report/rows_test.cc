#include "report/rows.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hvd::bench {
namespace {

constexpr double kNear = 100;
constexpr double kFar = 500;

// One case of `allreduce` at np=2 with the entrants layer (ours), openmpi (peer) and roof (limit).
Readings readings(uint64_t bytes, std::vector<Round> rounds) {
  CaseReadings c{
      .name = "np=2 bytes=" + std::to_string(bytes),
      .np = 2,
      .bytes = bytes,
      .entrants = {{"layer", Role::kOurs}, {"openmpi", Role::kPeer}, {"roof", Role::kLimit}},
      .rounds = std::move(rounds)};
  return {.bench = "allreduce", .source = "openmpi", .cases = {std::move(c)}};
}

Round round(double rtt_ns, std::vector<double> values) {
  return {.before_ns = rtt_ns, .after_ns = rtt_ns, .values = std::move(values)};
}

TEST(BenchRows, TakeTheMedianOfRatiosInsideARoundNotTheRatioOfMedians) {
  const auto rows = make_rows({readings(
      4, {round(kNear, {1, 10, 1}), round(kNear, {10, 20, 1}), round(kNear, {2, 6, 1})})});

  ASSERT_EQ(rows.size(), 1U);
  EXPECT_DOUBLE_EQ(*rows[0].peers.at("openmpi").ratio.near, 3);  // of 10, 2 and 3
  EXPECT_DOUBLE_EQ(rows[0].value, 2);
}

TEST(BenchRows, KeepFarRoundsOutOfTheFigureThatIsJudged) {
  const auto rows = make_rows(
      {readings(4, {round(kNear, {1, 5, 1}), round(kFar, {1, 2, 1}), round(kFar, {1, 2, 1})})});

  EXPECT_DOUBLE_EQ(*rows[0].peers.at("openmpi").ratio.near, 5);
  EXPECT_DOUBLE_EQ(*rows[0].peers.at("openmpi").ratio.far, 2);
  EXPECT_EQ(rows[0].near_rounds, 1);
  EXPECT_EQ(rows[0].far_rounds, 2);
  ASSERT_EQ(rows[0].verdicts.size(), 1U);
  EXPECT_TRUE(rows[0].verdicts[0].reached());  // 5 >= 4
}

TEST(BenchRows, CallARoundFarWhenItEndedFar) {
  Round moved = round(kNear, {1, 9, 1});
  moved.after_ns = kFar;

  const auto rows = make_rows({readings(4, {moved})});

  EXPECT_FALSE(rows[0].peers.at("openmpi").ratio.near.has_value());
  EXPECT_EQ(rows[0].far_rounds, 1);
}

TEST(BenchRows, JudgeNothingWithoutANearRound) {
  const auto rows = make_rows({readings(4, {round(kFar, {1, 100, 1})})});

  ASSERT_EQ(rows[0].verdicts.size(), 1U);
  EXPECT_FALSE(rows[0].verdicts[0].got.has_value());
  EXPECT_FALSE(rows[0].verdicts[0].reached());
}

TEST(BenchRows, SkipRoundsThatAnEntrantSatOut) {
  const auto rows =
      make_rows({readings(4, {round(kNear, {1, std::nan(""), 1}), round(kNear, {1, 4, 1})})});

  EXPECT_DOUBLE_EQ(*rows[0].peers.at("openmpi").ratio.near, 4);
}

TEST(BenchRows, MergeTheRunsOfSeveralMpisIntoOneRow) {
  Readings second = readings(64 << 10, {round(kNear, {4, 20, 1})});
  second.cases[0].entrants[1].name = "mpich";

  const auto rows = make_rows({readings(64 << 10, {round(kNear, {2, 10, 1})}), second});

  ASSERT_EQ(rows.size(), 1U);
  EXPECT_DOUBLE_EQ(rows[0].value, 2);  // of the first run
  EXPECT_DOUBLE_EQ(rows[0].peers.at("mpich").our_value, 4);
  EXPECT_DOUBLE_EQ(*rows[0].peers.at("mpich").ratio.near, 5);
  EXPECT_EQ(rows[0].verdicts.size(), 2U);
}

TEST(BenchRows, HoldAnyOtherMpiToItsOwnGoal) {
  Readings run = readings(1024, {round(kNear, {1, 1.5, 1})});
  run.cases[0].entrants[1].name = "openmpi-5.0.11";

  const auto rows = make_rows({run});

  ASSERT_EQ(rows[0].verdicts.size(), 1U);
  EXPECT_EQ(rows[0].verdicts[0].versus, "openmpi-5.0.11");
  EXPECT_DOUBLE_EQ(rows[0].verdicts[0].figure, 1.7);
  EXPECT_FALSE(rows[0].verdicts[0].reached());
}

TEST(BenchRows, HoldACaseWithoutASizeToTheGoalOfItsName) {
  const auto verdicts_of = [](const std::string& name) {
    CaseReadings c{.name = name,
                   .unit = "ms",
                   .np = 2,
                   .entrants = {{"horovod", Role::kOurs}, {"barrier only", Role::kLimit}},
                   .rounds = {round(kNear, {10, 9})}};
    return make_rows({{.bench = "torch", .source = "training", .cases = {c}}})[0].verdicts;
  };

  ASSERT_EQ(verdicts_of("np=2 share: MLP 784-2048-2048-10").size(), 1U);
  EXPECT_TRUE(verdicts_of("np=2 share: MLP 784-2048-2048-10")[0].reached());  // 0.9 >= 0.9
  EXPECT_FALSE(verdicts_of("np=2 share: CNN")[0].reached());                  // 0.9 < 0.96
  EXPECT_TRUE(verdicts_of("np=2 share: something else").empty());
}

TEST(BenchRows, GiveTheShareOfTheLimit) {
  const auto rows = make_rows({readings(1 << 20, {round(kNear, {2, 8, 1.5})})});

  ASSERT_TRUE(rows[0].limit.has_value());
  EXPECT_DOUBLE_EQ(*rows[0].limit->ratio.near, 0.75);
}

}  // namespace
}  // namespace hvd::bench
