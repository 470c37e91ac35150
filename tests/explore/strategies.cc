#include "tests/explore/strategies.h"

#include <algorithm>

#include "base/hash.h"

namespace hvd::explore {

RandomStrategy::RandomStrategy(uint64_t seed) : random_(seed) {
  constexpr uint32_t kPercents[] = {0, 30, 60, 85, 95};
  stays_percent_ = kPercents[random_() % std::size(kPercents)];
  holds_back_ = random_() % 2 == 0;
}

int RandomStrategy::choose(const std::vector<int>& ready, int current) {
  const auto contains = [&](int fiber) {
    return std::find(ready.begin(), ready.end(), fiber) != ready.end();
  };
  if (holds_back_ && held_for_ == 0 && random_() % 16 == 0) {
    held_ = ready[random_() % ready.size()];
    held_for_ = 1 + random_() % 200;
  }
  if (held_for_ > 0 && --held_for_ == 0) held_ = -1;
  if (current != held_ && contains(current) && random_() % 100 < stays_percent_) return current;
  const int picked = ready[random_() % ready.size()];
  return picked != held_ ? picked : ready[random_() % ready.size()];
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
