// The agreement under schedules that a test chooses, not a machine: the real channels of several
// ranks in one thread. See README.md for how to read and repeat what it finds.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "base/log.h"
#include "tests/explore/explore.h"

namespace hvd::explore {
namespace {

// Warnings of a full cache are what most of these programs are for.
class Quiet : public ::testing::Environment {
 public:
  void SetUp() override { set_log_options({.level = LogLevel::kError}); }
};
const auto* const kQuiet = ::testing::AddGlobalTestEnvironment(new Quiet);  // NOLINT: gtest owns it

// How long each random search takes; ./dev test full gives it more.
std::chrono::milliseconds budget() {
  const char* text = std::getenv("HVD_EXPLORE_SECONDS");
  const double seconds = text == nullptr ? 3 : std::atof(text);
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

void expect_nothing(const Search& search) {
  std::cout << search.schedules << " schedules";
  if (search.states > 0) std::cout << ", " << search.states << " states";
  std::cout << "\n";
  EXPECT_GT(search.schedules, 0u);
  if (search.finding) ADD_FAILURE() << shrink(*search.finding).text();
}

Program program_of(const char* text) {
  auto program = parse(text);
  EXPECT_TRUE(program) << text;
  return program.value_or(Program{});
}

// ---- every schedule of short programs

void try_every_schedule_of(const char* text) {
  const Search search = try_every_schedule(program_of(text), 5'000'000);

  expect_nothing(search);
  EXPECT_TRUE(search.is_complete) << "too many schedules to try them all";
  EXPECT_GT(search.ends, 0u) << "different states are taken for the same one: see World::digest";
}

class EverySchedule : public ::testing::TestWithParam<const char*> {};
TEST_P(EverySchedule, EndsWithTheSameOrderAndTheRightValues) { try_every_schedule_of(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Programs, EverySchedule,
    ::testing::Values(
        // A late tensor, and between its two sides something that one rank can finish alone.
        "np=2 cap=1024 : g1 B! B! | B! B! g1", "np=2 cap=1024 : r1 b2! b2! | b2! b2! r1",
        // Other orders on other ranks, without a cache.
        "np=2 cap=0 : r1 r2 * r1 | r2 r1 * r1",
        // Groups, and groups that differ.
        "np=2 cap=1 : G1 r2 * G1 | r2 G1 * G1", "np=2 cap=2 : G1 r2 | p1 r2",
        // A join.
        "np=2 cap=1 : r1! r2 J! r1! | r1! J! r1!",
        // A process set that is opened on the way.
        "np=2 cap=2 : P! +r1 r1 | P! r1 +r1",
        // One that is removed: with something in it that the other rank never submits, and with
        // another one that is opened in its place.
        "np=2 cap=2 : P! +r1 Q! r1 | P! Q! r1",
        "np=2 cap=2 : P! +r1! Q! P! +r1 | P! +r1! Q! P! +r1",
        // Three ranks.
        "np=3 cap=1 : r1 | r1 | r1",
        // Payloads deposited under one limit and run under another; pieces of another size.
        "np=2 cap=2 : e1! T1 e1 | e1! e1", "np=2 cap=2 : l1! T3 l1 | l1! l1"));

// Hundreds of thousands of states each.
class EveryScheduleSoak : public ::testing::TestWithParam<const char*> {};
TEST_P(EveryScheduleSoak, EndsWithTheSameOrderAndTheRightValues) {
  try_every_schedule_of(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Programs, EveryScheduleSoak,
                         ::testing::Values(
                             // Evictions while records are in flight.
                             "np=2 cap=1 : r1 r2 * r2 r1 | r2 r1 * r1 r2",
                             "np=2 cap=2 : r1! z2 r3 * r1 | r1! r3 z2 * r1",
                             "np=2 cap=1 : z0! z1 z2 z0 | z0! z2 z1 z0",
                             // Unnamed operations, and a join behind them.
                             "np=2 cap=2 : u0 z1 J! | z1 u0 J!",
                             // Tunings that come and go between operations in other orders.
                             "np=2 cap=2 : e1! T1 e1 T0 r2 | e1! r2 e1",
                             "np=2 cap=2 : l1! l1 T3 r2 l1 | l1! r2 l1 l1"));

// ---- random programs, random schedules

struct Case {
  const char* name;
  Shape shape;
};

class RandomSchedules : public ::testing::TestWithParam<Case> {};

TEST_P(RandomSchedules, NeverShowADifference) {
  RandomSearch search;
  search.shape = GetParam().shape;
  search.end = std::chrono::steady_clock::now() + budget();

  expect_nothing(try_random_schedules(search));
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, RandomSchedules,
    ::testing::Values(
        Case{"TwoRanksCapacity1", {.ranks = 2, .capacity = 1}},
        Case{"TwoRanksLong", {.ranks = 2, .capacity = 3, .windows = 12}},
        Case{"ThreeRanksCapacity2", {.ranks = 3, .capacity = 2}},
        Case{"ThreeRanksNoCache", {.ranks = 3, .capacity = 0}},
        Case{"ThreeRanksLargeCache", {.ranks = 3, .capacity = 1024, .windows = 6}},
        Case{"Late", {.ranks = 2, .capacity = 3, .windows = 8, .late = true}},
        Case{"LateOnThreeRanks",
             {.ranks = 3, .capacity = 2, .windows = 6, .sets = true, .late = true}},
        Case{"Overlaps",
             {.ranks = 3, .capacity = 2, .windows = 6, .overlaps = true, .kinds = "zr"}},
        Case{"OverlapsOfAllKinds", {.ranks = 3, .capacity = 3, .windows = 6, .overlaps = true}},
        Case{"FullRings", {.ranks = 2, .capacity = 2, .windows = 3, .batch = 14}},
        Case{"FourRanks", {.ranks = 4, .capacity = 2, .windows = 4}},
        Case{"Joins", {.ranks = 3, .capacity = 2, .windows = 5, .joins = true}},
        Case{"Sets", {.ranks = 3, .capacity = 2, .windows = 5, .sets = true}},
        Case{"SetsThatAreRemoved",
             {.ranks = 3, .capacity = 2, .windows = 8, .sets = true, .removes_sets = true}},
        Case{"SetsOfHostsThatAreRemoved",
             {.ranks = 3,
              .hosts = 2,
              .capacity = 2,
              .windows = 6,
              .sets = true,
              .removes_sets = true}},
        Case{"Tunings",
             {.ranks = 2, .capacity = 3, .windows = 8, .kinds = "lleeeerrzugbtsB", .tunes = true}},
        Case{"TuningsOfThreeRanks",
             {.ranks = 3,
              .capacity = 2,
              .windows = 6,
              .overlaps = true,
              .kinds = "leeeerg",
              .joins = true,
              .tunes = true}},
        Case{"TuningsOfSets",
             {.ranks = 3, .capacity = 2, .windows = 5, .sets = true, .tunes = true}},
        Case{"TuningsOverHosts",
             {.ranks = 4, .hosts = 2, .capacity = 2, .kinds = "lleeerrgbt", .tunes = true}},
        Case{"TwoHosts", {.ranks = 2, .hosts = 2, .capacity = 2}},
        Case{"TwoHostsOfTwo", {.ranks = 4, .hosts = 2, .capacity = 2}},
        Case{"ThreeHosts", {.ranks = 3, .hosts = 3, .capacity = 1, .windows = 5, .joins = true}}),
    [](const auto& info) { return std::string(info.param.name); });

// ---- repeating

TEST(Replay, DoesWhatItIsTold) {
  const char* text = std::getenv("HVD_EXPLORE_REPLAY");
  if (text == nullptr) GTEST_SKIP() << "HVD_EXPLORE_REPLAY names nothing to repeat";

  const Outcome outcome = replay(text);

  EXPECT_TRUE(outcome.is_ok()) << outcome.problem;
}

TEST(ProgramText, IsReadBackAsItWas) {
  for (uint64_t seed = 1; seed < 200; ++seed) {
    const Program program = random_program(
        seed, {.ranks = 3, .hosts = 2, .capacity = 2, .windows = 4, .joins = true, .sets = true});

    const auto again = parse(to_text(program));

    ASSERT_TRUE(again) << to_text(program);
    EXPECT_EQ(*again, program) << to_text(program);
  }
}

}  // namespace
}  // namespace hvd::explore
