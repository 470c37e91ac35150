// ring_pace.h - how often a rank that sleeps and wakes every few milliseconds, as over MPI, asks
// for the same sleeping rank of another host: less and less often while nothing comes from there. A
// host that is stopped reads nothing, and what lies in its socket would soon look like a lost one.
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

  // `heard` changes whenever something has come from there.
  bool may_ring(uint64_t heard, TimePoint now) {
    const bool is_news = heard_ != heard;
    if (!is_news && now < next_) return false;
    gap_ = is_news ? kShortest : std::min(gap_ * 2, kLongest);
    heard_ = heard;
    next_ = now + gap_;
    return true;
  }

 private:
  std::optional<uint64_t> heard_{};  // at the last ring; nullopt: there was none
  Nanoseconds gap_ = kShortest;
  TimePoint next_{};
};

}  // namespace hvd::mirror
