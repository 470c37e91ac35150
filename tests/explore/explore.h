// explore.h - looks for schedules that break a program, and makes what it finds short and
// repeatable.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "tests/explore/program.h"
#include "tests/explore/world.h"

namespace hvd::explore {

// Something that fails: enough to see it again.
struct Finding {
  Program program;
  Grain grain = Grain::kSteps;
  Outcome outcome;
  uint64_t tried = 0;  // schedules until it was found

  // For people, with the line that repeats it.
  std::string text() const;
};

struct Search {
  uint64_t schedules = 0;  // that were run
  // Where every schedule is tried: runs that came to the end of the program, states that were seen.
  uint64_t ends = 0, states = 0;
  bool is_complete = false;
  std::optional<Finding> finding;
};

// Every schedule of whole steps, states that were seen before counted once. At most so many runs.
Search try_every_schedule(const Program& program, uint64_t most_runs);

struct RandomSearch {
  Shape shape;
  uint64_t first_seed = 1;
  uint64_t schedules_per_program = 40;
  std::chrono::steady_clock::time_point end;
  uint64_t most_schedules = UINT64_MAX;
  std::optional<Program> program;  // this one instead of random ones
};
Search try_random_schedules(const RandomSearch& search);

// The same problem with less around it.
Finding shrink(const Finding& finding);

// What Finding::text() printed: "program / grain / schedule".
Outcome replay(const std::string& text);

}  // namespace hvd::explore
