#include "control/eager_ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace hvd::control {
namespace {

struct Live {
  uint32_t index, offset, bytes;
};

TEST(EagerRing, NeverHandsOutSpaceThatIsStillInUse) {
  std::mt19937 random(1);
  EagerRing ring;
  std::deque<Live> live;
  uint32_t watermark = 0;
  for (uint32_t index = 0; index < 20000; ++index) {
    while (live.size() > random() % 300) {  // peers consume in order
      watermark = live.front().index + 1;
      live.pop_front();
    }
    const uint32_t bytes = 1 + random() % 33000;
    const auto at = ring.take(index, bytes, watermark);
    if (!at) continue;
    ASSERT_LE(*at + bytes, kEagerBytes);
    for (const Live& other : live) {
      ASSERT_TRUE(*at + bytes <= other.offset || other.offset + other.bytes <= *at)
          << "record " << index << " overlaps record " << other.index;
    }
    live.push_back({index, *at, bytes});
  }
}

// As the engine does it: records without payload in between, and news of the peers only when the
// ring asks for them.
TEST(EagerRing, NeverOverlapsWhenItHearsLateOfWhatWasConsumed) {
  std::mt19937 random(2);
  EagerRing ring;
  std::deque<Live> live;
  uint32_t consumed = 0, watermark = 0;
  for (uint32_t index = 0; index < 50000; ++index) {
    consumed = std::max(consumed, index - std::min<uint32_t>(index, random() % 500));
    while (!live.empty() && live.front().index < consumed) live.pop_front();
    if (random() % 3 == 0 && index - watermark < kRecords - 1) {
      ring.skip(index);
      continue;
    }
    const uint32_t bytes = 105 + random() % 900;
    if (ring.wants_watermark(bytes) || index - watermark >= kRecords - 1) watermark = consumed;
    const auto at = ring.take(index, bytes, watermark);
    if (!at) continue;
    ASSERT_LE(*at + bytes, kEagerBytes);
    for (const Live& other : live) {
      ASSERT_TRUE(*at + bytes <= other.offset || other.offset + other.bytes <= *at)
          << "record " << index << " overlaps record " << other.index;
    }
    live.push_back({index, *at, bytes});
  }
}

TEST(EagerRing, StaysSmallWhilePeersKeepUp) {
  EagerRing ring;
  for (uint32_t index = 0; index < 1000; ++index) {
    const auto at = ring.take(index, 1000, index);  // everything before is consumed
    ASSERT_TRUE(at);
    EXPECT_LE(*at + 1000, 64u << 10);
  }
}

TEST(EagerRing, SaysNoInsteadOfBlockingWhenFull) {
  EagerRing ring;
  uint32_t index = 0;
  while (ring.take(index, 30000, 0)) ++index;
  EXPECT_GE(index, 8u);
  ring.skip(index);
  EXPECT_FALSE(ring.take(index + 1, 30000, 0));
  EXPECT_TRUE(ring.take(index + 2, 30000, index + 2)) << "all consumed: there is room again";
}

TEST(EagerRing, RefusesWhatIsLongerThanHalfTheRing) {
  EagerRing ring;
  EXPECT_FALSE(ring.take(0, kEagerBytes, 0));
}

}  // namespace
}  // namespace hvd::control
