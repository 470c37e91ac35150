// strategies.h - who runs on at a point: at random, as written down, or everything in turn.
#pragma once

#include <cstdint>
#include <random>
#include <unordered_set>
#include <vector>

#include "tests/explore/scheduler.h"

namespace hvd::explore {

// By a seed. Each fiber has a weight that changes now and then, between hardly ever and nearly
// always: ranks lag far behind others for a while, as on a host that is busy with something else.
class RandomStrategy final : public Strategy {
 public:
  explicit RandomStrategy(uint64_t seed);
  int choose(const std::vector<int>& ready, int current) override;

 private:
  uint32_t weight_of(int fiber);
  uint32_t draw_weight();

  std::mt19937_64 random_;
  uint32_t stays_percent_;  // how often the current one runs on, whatever the weights are
  uint32_t changes_every_;  // so many choices, on average
  std::vector<uint32_t> weights_;
};

// As written down; behind the end the lowest that is ready.
class ReplayStrategy final : public Strategy {
 public:
  explicit ReplayStrategy(std::vector<int> schedule) : schedule_(std::move(schedule)) {}
  int choose(const std::vector<int>& ready, int current) override;

 private:
  const std::vector<int> schedule_;
  size_t next_ = 0;
};

// Run after run another path, until there is none: every choice is tried in every state. A state
// that was seen before ends a run, so each one is left in all its ways once.
class EveryStrategy final : public Strategy {
 public:
  void begin(Peek peek) override;
  int choose(const std::vector<int>& ready, int current) override;
  // Goes to the next path; false: all were taken.
  bool advance();
  size_t states() const { return seen_.size(); }

 private:
  struct Choice {
    std::vector<int> ready;
    size_t taken;
  };
  Peek peek_;
  std::vector<Choice> path_;
  size_t depth_ = 0;
  bool is_stopped_ = false;
  std::unordered_set<uint64_t> seen_;
};

}  // namespace hvd::explore
