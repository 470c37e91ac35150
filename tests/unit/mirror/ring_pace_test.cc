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
  int first = 0;
  int later = 0;

  for (int ms = 0; ms < 61'000; ++ms)
    (ms < 1000 ? first : later) += pace.may_ring(7, TimePoint(milliseconds(ms))) ? 1 : 0;

  EXPECT_LE(first, 500) << "once in two milliseconds";
  EXPECT_LE(later, 60 * 2 + 10) << "little more than life signs";
  EXPECT_GE(later, 60 * 2 - 10) << "but never no more";
}

TEST(RingPace, AsksAsOftenOfAHostThatIsHeardByLifeSigns) {
  RingPace pace;
  int rings = 0;

  for (int ms = 0; ms < 60'000; ++ms)
    rings += pace.may_ring(static_cast<uint64_t>(ms / 500), TimePoint(milliseconds(ms))) ? 1 : 0;

  EXPECT_GE(rings, 60 * 490);
}

}  // namespace
}  // namespace hvd::mirror
