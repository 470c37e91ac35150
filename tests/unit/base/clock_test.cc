#include "base/clock.h"

#include <gtest/gtest.h>

#include <chrono>

#include "base/fake_clock.h"

namespace hvd {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Deadline, PassesWhenItsTimeHasCome) {
  FakeClock clock;
  const Deadline deadline = Deadline::after(seconds(2), clock.now());
  EXPECT_FALSE(deadline.passed(clock.now()));

  clock.advance(seconds(2) - Nanoseconds(1));
  EXPECT_FALSE(deadline.passed(clock.now()));

  clock.advance(Nanoseconds(1));
  EXPECT_TRUE(deadline.passed(clock.now()));
}

TEST(Deadline, TellsWhatRemainsWithinACap) {
  FakeClock clock;
  const Deadline deadline = Deadline::at(clock.now() + seconds(10));

  EXPECT_EQ(deadline.remaining(hours(1), clock.now()), seconds(10));
  EXPECT_EQ(deadline.remaining(milliseconds(5), clock.now()), milliseconds(5));

  clock.advance(seconds(11));
  EXPECT_EQ(deadline.remaining(hours(1), clock.now()), Nanoseconds(0));
}

TEST(Deadline, NeverPassesWhenItIsNever) {
  EXPECT_TRUE(Deadline::never().is_never());
  EXPECT_FALSE(Deadline::never().passed());
  EXPECT_FALSE(Deadline::never().passed(TimePoint::max()));
  EXPECT_EQ(Deadline::never().remaining(seconds(3)), seconds(3));
}

TEST(Deadline, OfATimeBeyondTheClockIsNever) {
  EXPECT_TRUE(Deadline::after(Nanoseconds::max()).is_never());
  EXPECT_FALSE(Deadline::after(hours(24 * 365)).is_never());
}

TEST(Deadline, OfNoTimeHasPassed) {
  EXPECT_TRUE(Deadline::after(Nanoseconds(0)).passed());
  EXPECT_TRUE(Deadline::after(Nanoseconds(-1)).passed());
}

TEST(Clock, SteadyNeverGoesBack) {
  const TimePoint before = Clock::steady().now();

  EXPECT_GE(Clock::steady().now(), before);
}

TEST(Ticks, RunAtTheRateTheyClaim) {
  const double rate = ticks_per_second();
  const auto clock_start = Clock::steady().now();
  const uint64_t tick_start = ticks_now();
  while (Clock::steady().now() - clock_start < milliseconds(2)) {
  }

  const double by_ticks = static_cast<double>(ticks_now() - tick_start) / rate;
  const std::chrono::duration<double> by_clock = Clock::steady().now() - clock_start;

  // A pause between the two readings may add time, so only the order of magnitude is certain.
  EXPECT_GT(by_ticks, 0.001);
  EXPECT_LT(by_ticks, by_clock.count() * 2);
}

}  // namespace
}  // namespace hvd
