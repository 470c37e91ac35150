#include "shm/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace hvd::shm {
namespace {

class ArenaTest : public ::testing::Test {
 protected:
  static constexpr size_t kBytes = 1 << 20;
  Segment segment_ = std::move(*Segment::create(2 * kBytes));
  Arena arena_{segment_, kBytes, kBytes};
};

TEST_F(ArenaTest, GivesZeroedAlignedMemoryThatDoesNotOverlap) {
  std::vector<std::byte*> buffers;
  for (int i = 0; i < 20; ++i) {
    auto data = arena_.alloc(10000);
    ASSERT_TRUE(data) << data.status().message();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(*data) % Arena::kAlignment, 0u);
    EXPECT_TRUE(std::all_of(*data, *data + 10000, [](std::byte b) { return b == std::byte{0}; }));
    std::memset(*data, i + 1, 10000);
    buffers.push_back(*data);
  }
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(buffers[static_cast<size_t>(i)][9999], static_cast<std::byte>(i + 1));
}

TEST_F(ArenaTest, FreedMemoryIsZeroAgain) {
  auto first = arena_.alloc(kBytes / 2);
  ASSERT_TRUE(first);
  std::memset(*first, 1, kBytes / 2);
  ASSERT_TRUE(arena_.free(*first));

  auto second = arena_.alloc(kBytes / 2);

  ASSERT_TRUE(second);
  EXPECT_EQ((*second)[100], std::byte{0});
}

TEST_F(ArenaTest, KnowsWhatLiesInALiveBuffer) {
  auto data = arena_.alloc(5000);
  ASSERT_TRUE(data);
  EXPECT_TRUE(arena_.contains(*data + 10, 4000));
  EXPECT_FALSE(arena_.contains(*data, kBytes)) << "longer than the buffer";
  EXPECT_FALSE(arena_.contains(segment_.data(), 1)) << "another rank's part";
  ASSERT_TRUE(arena_.free(*data));
  EXPECT_FALSE(arena_.contains(*data, 1));
}

TEST_F(ArenaTest, RefusesNothingTooMuchAndForeignPointers) {
  EXPECT_EQ(arena_.alloc(0).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(arena_.alloc(2 * kBytes).status().code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(arena_.alloc(SIZE_MAX).status().code(), StatusCode::kOutOfMemory);
  int local = 0;
  EXPECT_EQ(arena_.free(&local).code(), StatusCode::kInvalidArgument);
  auto data = arena_.alloc(100);
  ASSERT_TRUE(data);
  EXPECT_EQ(arena_.free(*data + 1).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hvd::shm
