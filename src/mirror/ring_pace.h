// ring_pace.h - how often a rank that sleeps and wakes every few milliseconds, as over MPI, asks
// for the same sleeping rank of another host: less and less often when nothing has come from there
// for longer than life signs take. A host that is stopped reads nothing, and what lies in its
// socket would soon look like a lost one. News of that rank itself may come by another link.
// Pure; one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace hvd::mirror {

class RingPace {
 public:
  static constexpr Nanoseconds kShortest = std::chrono::milliseconds(2);
  static constexpr Nanoseconds kLongest = std::chrono::milliseconds(500);  // as life signs
  static constexpr Nanoseconds kSilence = 2 * kLongest;

  // `heard` changes whenever something has come from there.
  bool may_ring(uint64_t heard, TimePoint now) {
    const bool is_news = heard_ != heard;
    if (!is_news && now < next_) return false;
    if (is_news) heard_at_ = now;
    gap_ = now - heard_at_ < kSilence ? kShortest : std::min(gap_ * 2, kLongest);
    heard_ = heard;
    next_ = now + gap_;
    return true;
  }

 private:
  std::optional<uint64_t> heard_{};  // at the last ring; nullopt: there was none
  TimePoint heard_at_{};
  Nanoseconds gap_ = kShortest;
  TimePoint next_{};
};

}  // namespace hvd::mirror
