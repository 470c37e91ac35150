// fake_clock.h - a Clock that stands still until a test moves it. Any thread.
#pragma once

#include <atomic>

#include "base/clock.h"

namespace hvd {

class FakeClock final : public Clock {
 public:
  TimePoint now() const override { return TimePoint(Nanoseconds(nanoseconds_.load())); }
  void advance(Nanoseconds span) { nanoseconds_ += span.count(); }

 private:
  // Starts at one second, so that a moment before the start exists too. Publishes nothing but
  // itself.
  std::atomic<int64_t> nanoseconds_{1'000'000'000};
};

}  // namespace hvd
