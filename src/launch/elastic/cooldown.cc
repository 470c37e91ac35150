#include "launch/elastic/cooldown.h"

#include <algorithm>

namespace hvd::launch {
namespace {

constexpr std::chrono::seconds kFirstPause{1};
constexpr std::chrono::seconds kLongestPause{60};
constexpr int kMostDoublings = 16;

// The first failure waits for twice the lower bound, plus up to one of it; each further one twice
// as long. Never outside the range.
Nanoseconds range_pause(std::pair<int32_t, int32_t> range, int failures, double chance) {
  const double least = range.first;
  const double pause = least * static_cast<double>(1 << std::min(failures, kMostDoublings)) +
                       std::clamp(chance, 0.0, 1.0) * least;
  const double kept = std::clamp(pause, least, static_cast<double>(range.second));
  return Nanoseconds(static_cast<int64_t>(kept * 1e9));
}

}  // namespace

void Cooldown::note_failure(TimePoint now, const CooldownRules& rules, double chance,
                            bool is_only_host) {
  if (!is_over(now)) return;
  const bool is_forgiven = failures_ > 0 && now - until_ > kLongestPause;
  failures_ = is_forgiven ? 1 : failures_ + 1;
  if (rules.range) {
    until_ = now + range_pause(*rules.range, failures_, chance);
  } else if (is_only_host) {
    const int doublings = std::min(failures_ - 1, kMostDoublings);
    until_ = now + std::min<Nanoseconds>(kFirstPause * (1 << doublings), kLongestPause);
  } else {
    until_ = TimePoint::max();
  }
}

}  // namespace hvd::launch
