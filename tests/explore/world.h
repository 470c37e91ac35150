// world.h - one job in one thread: the channels of all ranks (agreement, slots, data plane: the
// real code), each with a fiber that runs its part of a program and one that drives it. Runs one
// schedule and says what was wrong, if anything was.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/explore/program.h"
#include "tests/explore/scheduler.h"

namespace hvd::explore {

struct Outcome {
  std::string problem;        // empty: everything was as it should be
  std::string kind;           // what sort of problem it is: "stuck", "value", "order", ...
  std::vector<int> schedule;  // fibers, choice by choice
  uint64_t turns = 0;
  bool has_ended = false;  // all ranks have done their part; else the strategy had seen enough

  bool is_ok() const { return problem.empty(); }
};

Outcome run(const Program& program, Grain grain, Strategy& strategy);

}  // namespace hvd::explore
