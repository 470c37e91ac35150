#include "tests/explore/strategies.h"

#include <algorithm>

#include "base/hash.h"

namespace hvd::explore {

RandomStrategy::RandomStrategy(uint64_t seed) : random_(seed) {
  constexpr uint32_t kPercents[] = {0, 0, 30, 60, 85, 95};
  constexpr uint32_t kChanges[] = {3, 8, 20, 100};
  stays_percent_ = kPercents[random_() % std::size(kPercents)];
  changes_every_ = kChanges[random_() % std::size(kChanges)];
}

uint32_t RandomStrategy::draw_weight() {
  constexpr uint32_t kWeights[] = {1, 8, 64, 512};
  return kWeights[random_() % std::size(kWeights)];
}

uint32_t RandomStrategy::weight_of(int fiber) {
  while (weights_.size() <= static_cast<size_t>(fiber)) weights_.push_back(draw_weight());
  return weights_[static_cast<size_t>(fiber)];
}

int RandomStrategy::choose(const std::vector<int>& ready, int current) {
  if (random_() % 100 < stays_percent_ &&
      std::find(ready.begin(), ready.end(), current) != ready.end())
    return current;
  uint64_t total = 0;
  for (const int fiber : ready) total += weight_of(fiber);
  if (random_() % changes_every_ == 0) weights_[random_() % weights_.size()] = draw_weight();
  uint64_t at = random_() % total;
  for (const int fiber : ready) {
    const uint32_t weight = weight_of(fiber);
    if (at < weight) return fiber;
    at -= weight;
  }
  return ready.back();  // a weight grew meanwhile
}

int ReplayStrategy::choose(const std::vector<int>& ready, int) {
  while (next_ < schedule_.size()) {
    const int wanted = schedule_[next_++];
    if (std::find(ready.begin(), ready.end(), wanted) != ready.end()) return wanted;
  }
  return ready.front();
}

void EveryStrategy::begin(Peek peek) {
  peek_ = std::move(peek);
  depth_ = 0;
  is_stopped_ = false;
}

int EveryStrategy::choose(const std::vector<int>& ready, int) {
  if (is_stopped_) return ready.front();
  if (depth_ == path_.size()) {
    uint64_t digest = peek_.digest();
    for (const int fiber : ready) digest = mix(digest, static_cast<uint64_t>(fiber));
    if (!seen_.insert(digest).second) {
      is_stopped_ = true;
      peek_.stop();
      return ready.front();
    }
    path_.push_back({ready, 0});
  }
  const Choice& choice = path_[depth_++];
  return choice.ready[choice.taken];
}

bool EveryStrategy::advance() {
  while (!path_.empty() && ++path_.back().taken == path_.back().ready.size()) path_.pop_back();
  return !path_.empty();
}

}  // namespace hvd::explore
