// contest.h - runs contestants block by block, interleaved, and tags each round with the placement.
// Round = { probe, a block of each contestant in random order, probe }; a block is ~3 ms of
// operations behind a barrier, its value the mean per operation of the slowest rank. Neighbouring
// blocks see the same placement of the virtual CPUs and the same clock speed; distant ones do not.
// Collective: every rank calls the same functions in the same order.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "placement.h"
#include "report/readings.h"
#include "world.h"

namespace hvd::bench {

struct Contestant {
  Entrant entrant;
  std::function<void(int operations)> run;
  std::function<void()> check;  // throws BenchError on a wrong result; may be empty (roof)
  int every = 1;                // takes part in every n-th round: for peers that are very slow
};

// The loop is inside the call, so that a 50 ns operation does not pay for a std::function.
template <typename Operation>
std::function<void(int)> repeated(Operation operation) {
  return [operation = std::move(operation)](int operations) mutable {
    for (int i = 0; i < operations; ++i) operation();
  };
}

struct Effort {
  double seconds_per_case = 8;
  double block_seconds = 0.003;
  int min_rounds = 5;
  int min_near_rounds = 5;  // wait for these up to 1.3 times the time of the case
};

struct Contest {
  std::string name;
  uint64_t bytes = 0;
  std::vector<Contestant> contestants;
  // Adds the entrant "exchange": half the probed round trip, the limit of a tiny allreduce.
  bool limited_by_exchange = false;
  // Entrants whose time was found elsewhere: microseconds, the same in every round.
  std::vector<std::pair<Entrant, double>> fixed = {};
};

CaseReadings measure(const World& world, Placement& placement, const Contest& contest,
                     const Effort& effort);

// Times operations one by one on every rank, blocks interleaved; two cases: p50 and p99 of all
// ranks.
std::vector<CaseReadings> measure_tail(const World& world, const Contest& contest,
                                       const Effort& effort);

}  // namespace hvd::bench
