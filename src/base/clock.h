// clock.h - time as an input. Deadline is a point in steady time, or never. Any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace hvd {

using Nanoseconds = std::chrono::nanoseconds;
using TimePoint = std::chrono::steady_clock::time_point;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
  static const Clock& steady();
};

class Deadline {
 public:
  static Deadline never() { return Deadline(TimePoint::max()); }
  static Deadline at(TimePoint when) { return Deadline(when); }
  static Deadline after(Nanoseconds span, TimePoint now = std::chrono::steady_clock::now()) {
    return span >= TimePoint::max() - now ? never() : Deadline(now + span);
  }
  TimePoint when() const { return when_; }
  bool is_never() const { return when_ == TimePoint::max(); }
  bool passed() const { return !is_never() && passed(std::chrono::steady_clock::now()); }
  bool passed(TimePoint now) const { return !is_never() && now >= when_; }
  // Zero when passed; capped at `most`.
  Nanoseconds remaining(Nanoseconds most, TimePoint now = std::chrono::steady_clock::now()) const {
    if (is_never()) return most;
    if (now >= when_) return Nanoseconds(0);
    return std::min(most, std::chrono::duration_cast<Nanoseconds>(when_ - now));
  }

 private:
  explicit Deadline(TimePoint when) : when_(when) {}
  TimePoint when_;
};

// A cheap monotonic counter for per-operation stamps, and its rate. Not comparable between hosts.
inline uint64_t ticks_now() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}
double ticks_per_second();

}  // namespace hvd
