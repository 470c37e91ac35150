#include "contest.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace hvd::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
// Slower than this, an untimed first operation costs more than the cold caches it avoids.
constexpr double kWarmUpLimitSeconds = 0.020;
constexpr int kMaxOperations = 1 << 20;
constexpr int kTailBlock = 500;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Seconds per operation of the slowest rank; the same value on all ranks.
double time_block(const World& world, const Contestant& contestant, int operations) {
  world.barrier();
  const auto start = Clock::now();
  contestant.run(operations);
  return world.largest(seconds_since(start)) / operations;
}

struct Block {
  int operations = 1;
  bool warm_up = true;
};

Block calibrate(const World& world, const Contestant& contestant, double block_seconds) {
  int operations = 1;
  double seconds = 0;
  for (;;) {
    // The better of two: one interruption must not end the search at a single operation.
    seconds = std::min(time_block(world, contestant, operations),
                       time_block(world, contestant, operations));
    if (seconds * operations > block_seconds / 3 || operations >= kMaxOperations) break;
    operations *= 4;
  }
  const double wanted = std::clamp(block_seconds / seconds, 1.0, double{kMaxOperations});
  return {.operations = static_cast<int>(wanted), .warm_up = seconds < kWarmUpLimitSeconds};
}

// Placement and neighbours change what fits into a block; `seconds` is agreed, so all ranks follow.
void adapt(Block& block, double seconds, double block_seconds) {
  const double took = seconds * block.operations;
  if (took < block_seconds / 2 && block.operations < kMaxOperations) block.operations *= 2;
  if (took > block_seconds * 4 && block.operations > 1) block.operations /= 2;
}

// The same order on all ranks, another one in each round: nobody always runs behind the same rival.
std::vector<size_t> shuffled(size_t count, int round) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(round)));
  return order;
}

void check_all(const World& world, const Contest& contest) {
  for (const Contestant& contestant : contest.contestants) {
    if (!contestant.check) continue;
    world.barrier();
    contestant.check();  // the first call of a negotiated operation takes the slow path,
    contestant.check();  // the second one the path that is measured
  }
}

std::vector<Entrant> entrants_of(const Contest& contest) {
  std::vector<Entrant> entrants;
  for (const Contestant& contestant : contest.contestants) entrants.push_back(contestant.entrant);
  return entrants;
}

Round run_round(const World& world, Placement& placement, const Contest& contest,
                std::vector<Block>& blocks, const Effort& effort, int number) {
  Round round;
  round.values.assign(contest.contestants.size(), kNan);
  round.before_ns = placement.round_trip_ns();
  for (const size_t index : shuffled(contest.contestants.size(), number)) {
    const Contestant& contestant = contest.contestants[index];
    if (number % contestant.every != 0) continue;
    if (blocks[index].warm_up) contestant.run(1);
    const double seconds = time_block(world, contestant, blocks[index].operations);
    round.values[index] = 1e6 * seconds;
    adapt(blocks[index], seconds, effort.block_seconds);
  }
  round.after_ns = placement.round_trip_ns();
  if (contest.limited_by_exchange) {
    round.values.push_back((round.before_ns + round.after_ns) / 4 / 1000);
  }
  for (const auto& [entrant, microseconds] : contest.fixed) round.values.push_back(microseconds);
  return round;
}

double percentile(std::vector<double>& samples, double share) {
  const auto position = samples.begin() + static_cast<ptrdiff_t>(share * (samples.size() - 1));
  std::nth_element(samples.begin(), position, samples.end());
  return *position;
}

}  // namespace

CaseReadings measure(const World& world, Placement& placement, const Contest& contest,
                     const Effort& effort) {
  CaseReadings readings{.name = contest.name,
                        .np = world.size(),
                        .bytes = contest.bytes,
                        .entrants = entrants_of(contest),
                        .rounds = {}};
  if (contest.limited_by_exchange) {
    readings.entrants.push_back({.name = "exchange", .role = Role::kLimit});
  }
  for (const auto& [entrant, microseconds] : contest.fixed) readings.entrants.push_back(entrant);
  check_all(world, contest);
  std::vector<Block> blocks;
  for (const Contestant& contestant : contest.contestants) {
    blocks.push_back(calibrate(world, contestant, effort.block_seconds));
  }

  const auto start = Clock::now();
  int near_rounds = 0;
  bool go_on = true;
  while (go_on) {
    const int number = static_cast<int>(readings.rounds.size());
    readings.rounds.push_back(run_round(world, placement, contest, blocks, effort, number));
    const Round& round = readings.rounds.back();
    if (is_near(round.before_ns) && is_near(round.after_ns)) ++near_rounds;
    const double seconds = seconds_since(start);
    const bool enough =
        number + 1 >= effort.min_rounds && seconds > effort.seconds_per_case &&
        (near_rounds >= effort.min_near_rounds || seconds > 1.3 * effort.seconds_per_case);
    go_on = world.from_first(enough ? 0.0 : 1.0) > 0;  // only rank 0's clock counts
  }
  return readings;
}

std::vector<CaseReadings> measure_tail(const World& world, const Contest& contest,
                                       const Effort& effort) {
  check_all(world, contest);
  const size_t count = contest.contestants.size();
  std::vector<std::vector<double>> samples(count);
  const auto start = Clock::now();
  for (int number = 0; world.from_first(seconds_since(start)) < effort.seconds_per_case; ++number) {
    for (const size_t index : shuffled(count, number)) {
      const Contestant& contestant = contest.contestants[index];
      world.barrier();
      contestant.run(20);
      for (int i = 0; i < kTailBlock; ++i) {
        const auto before = Clock::now();
        contestant.run(1);
        samples[index].push_back(1e6 * seconds_since(before));
      }
    }
  }

  std::vector<CaseReadings> cases;
  Round p50, p99;
  for (std::vector<double>& own : samples) {
    std::vector<double> together = world.gather(own);
    p50.values.push_back(together.empty() ? kNan : percentile(together, 0.50));
    p99.values.push_back(together.empty() ? kNan : percentile(together, 0.99));
  }
  for (const auto& [metric, round] : {std::pair{"p50", p50}, std::pair{"p99", p99}}) {
    cases.push_back({.name = contest.name + " " + metric,
                     .metric = metric,
                     .np = world.size(),
                     .bytes = contest.bytes,
                     .entrants = entrants_of(contest),
                     .rounds = {round}});
  }
  return cases;
}

}  // namespace hvd::bench
