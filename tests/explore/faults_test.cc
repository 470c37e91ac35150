// Does the explorer see what it is for? Each fault of faults/ is planted, and has to be found.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>

#include "base/log.h"
#include "tests/explore/explore.h"

namespace hvd::explore {

int planted_fault = 0;  // read by the sources with faults; 0: none

namespace {

struct Fault {
  int number;
  const char* name;
  const char* sentence;
};
constexpr Fault kFaults[] = {
#include "faults/planted_faults.inc.h"
};

constexpr Shape kShapes[] = {
    {.ranks = 2, .capacity = 1},
    {.ranks = 3, .capacity = 2},
    {.ranks = 3, .capacity = 2, .windows = 8},
    {.ranks = 3, .capacity = 1024, .windows = 6},
    {.ranks = 2, .capacity = 1024, .windows = 8, .late = true},
    {.ranks = 2, .capacity = 3, .windows = 12},
    {.ranks = 2, .capacity = 2, .windows = 3, .batch = 14},
    {.ranks = 3, .capacity = 2, .windows = 6, .overlaps = true, .kinds = "zr", .groups = false},
    {.ranks = 3, .hosts = 3, .capacity = 2},
    {.ranks = 2, .capacity = 3, .windows = 8, .kinds = "leeer", .tunes = true},
};

// What once broke ordinary programs, as short as it gets.
constexpr const char* kPrograms[] = {
    "np=2 cap=1024 : g1 B! B! | B! B! g1",
    "np=3 cap=1024 : r1 b2! b2! | b2! b2! r1 | b2! b2! r1",
    "np=2 cap=1 : z0! z1 z2 z0 z3 | z0! z2 z1 z0 z3",
    "np=2 cap=2 : e1! T1 e1 | e1! e1",
    "np=2 cap=2 : l1! l1 T3 r2 | l1! l1 r2",
};

// The programs, then the shapes in turn, a thousand schedules each, other programs every time.
Search search_until(std::chrono::steady_clock::time_point end) {
  Search all;
  for (const char* text : kPrograms) {
    RandomSearch search;
    search.program = parse(text);
    search.most_schedules = 3000;
    search.schedules_per_program = search.most_schedules;
    search.end = end;
    const Search one = try_random_schedules(search);
    all.schedules += one.schedules;
    all.finding = one.finding;
    if (all.finding) return all;
  }
  for (uint64_t round = 0; std::chrono::steady_clock::now() < end; ++round) {
    for (const Shape& shape : kShapes) {
      RandomSearch search;
      search.shape = shape;
      search.first_seed = 1 + round * 1000;
      search.most_schedules = 1000;
      search.end = end;
      const Search one = try_random_schedules(search);
      all.schedules += one.schedules;
      all.finding = one.finding;
      if (all.finding) return all;
    }
  }
  return all;
}

class PlantedFault : public ::testing::Test {
 protected:
  void SetUp() override { set_log_options({.level = LogLevel::kFatal}); }
  void TearDown() override { planted_fault = 0; }
};
class EachFault : public PlantedFault, public ::testing::WithParamInterface<Fault> {};

// Prints what it finds; true: there was something.
bool finds_it() {
  const auto begin = std::chrono::steady_clock::now();
  const Search search = search_until(begin + std::chrono::seconds(120));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::cout << "  " << search.schedules << " schedules, " << took.count() << " s: ";
  if (search.finding) std::cout << search.finding->text();
  std::cout << std::endl;
  return search.finding.has_value();
}

TEST_P(EachFault, IsFound) {
  planted_fault = GetParam().number;
  std::cout << GetParam().sentence << std::endl;

  // In a process of its own: what a fault leads to may end it.
  const pid_t child = fork();
  if (child == 0) _exit(finds_it() ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);

  EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << "not found";
}

INSTANTIATE_TEST_SUITE_P(Faults, EachFault, ::testing::ValuesIn(kFaults),
                         [](const auto& info) { return std::string(info.param.name); });

size_t word_count(const Program& program) {
  size_t count = 0;
  for (const auto& words : program.words) count += words.size();
  return count;
}

TEST_F(PlantedFault, WhatIsFoundIsMadeShortAndCanBeRepeated) {
  for (const Fault& fault : kFaults) {
    if (std::string_view(fault.name) == "reads_ahead_of_its_table") planted_fault = fault.number;
  }
  ASSERT_NE(planted_fault, 0);
  const Search search = search_until(std::chrono::steady_clock::now() + std::chrono::seconds(120));
  ASSERT_TRUE(search.finding);

  const Finding shrunk = shrink(*search.finding);

  EXPECT_LE(word_count(shrunk.program), 12u) << shrunk.text();
  const std::string text = shrunk.text();
  const size_t begin = text.find('\'') + 1;
  EXPECT_EQ(replay(text.substr(begin, text.rfind('\'') - begin)).kind, shrunk.outcome.kind);
}

TEST(NoFault, FindsNothing) {
  set_log_options({.level = LogLevel::kFatal});
  RandomSearch search;
  search.shape = kShapes[1];
  search.end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  search.most_schedules = 2000;

  EXPECT_FALSE(try_random_schedules(search).finding);
}

}  // namespace
}  // namespace hvd::explore
