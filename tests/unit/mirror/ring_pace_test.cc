#include "mirror/ring_pace.h"

#include <gtest/gtest.h>

namespace hvd::mirror {
namespace {

using std::chrono::milliseconds;

TEST(RingPace, AsksAtOnceAfterNews) {
  RingPace pace;
  const TimePoint now{};

  EXPECT_TRUE(pace.may_ring(0, now));
  EXPECT_FALSE(pace.may_ring(0, now)) << "nothing has come since";
  EXPECT_TRUE(pace.may_ring(1, now));
}

TEST(RingPace, AsksWhoStaysSilentLessAndLessOften) {
  RingPace pace;
  int rings = 0;

  for (int ms = 0; ms < 60'000; ++ms)
    rings += pace.may_ring(7, TimePoint(milliseconds(ms))) ? 1 : 0;

  EXPECT_LE(rings, 60 * 2 + 10) << "little more than life signs";
  EXPECT_GE(rings, 60 * 2 - 10) << "but never no more";
}

}  // namespace
}  // namespace hvd::mirror
