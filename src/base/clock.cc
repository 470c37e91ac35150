#include "base/clock.h"

namespace hvd {
namespace {

class SteadyClock final : public Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }
};

double measure_tick_rate() {
  const auto t0 = std::chrono::steady_clock::now();
  const uint64_t c0 = ticks_now();
  // Long enough for 0.1 % accuracy; done once per process, off the fast path.
  while (std::chrono::steady_clock::now() - t0 < std::chrono::microseconds(200)) {
  }
  const uint64_t c1 = ticks_now();
  const std::chrono::duration<double> span = std::chrono::steady_clock::now() - t0;
  return static_cast<double>(c1 - c0) / span.count();
}

}  // namespace

const Clock& Clock::steady() {
  static const SteadyClock clock;
  return clock;
}

double ticks_per_second() {
  static const double rate = measure_tick_rate();
  return rate;
}

}  // namespace hvd
