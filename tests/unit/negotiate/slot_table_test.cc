#include "negotiate/slot_table.h"

#include <gtest/gtest.h>

namespace hvd::negotiate {
namespace {

SlotPtr make_slot(uint64_t key) {
  auto slot = std::make_shared<Slot>();
  slot->key = key;
  slot->requests.emplace_back();
  return slot;
}

TEST(SlotTable, EvictsTheLeastRecentlyUsedWhenFull) {
  SlotTable table(2, 1);
  const SlotPtr a = make_slot(1), b = make_slot(2), c = make_slot(3);
  table.insert(a, 1);
  table.insert(b, 2);
  a->last_used = 3;

  const auto evicted = table.insert(c, 4);

  ASSERT_EQ(evicted.size(), 1u);
  EXPECT_EQ(evicted[0], b);
  EXPECT_FALSE(b->is_live);
  EXPECT_EQ(table.live_count(), 2u);
  EXPECT_EQ(table.evictions(), 1u);
}

TEST(SlotTable, ReplacesTheSlotOfTheSameName) {
  SlotTable table(10, 1);
  const SlotPtr old = make_slot(7), fresh = make_slot(7);
  table.insert(old, 1);

  const auto evicted = table.insert(fresh, 2);

  ASSERT_EQ(evicted.size(), 1u);
  EXPECT_EQ(evicted[0], old);
  EXPECT_NE(old->id, fresh->id) << "numbers are never reused";
  EXPECT_EQ(table.evictions(), 0u) << "a replacement is not an eviction";
}

TEST(SlotTable, UnnamedSlotsWithOneKeyLiveSideBySide) {
  SlotTable table(10, 1);
  const SlotPtr a = make_slot(7), b = make_slot(7);
  a->is_unnamed = b->is_unnamed = true;
  table.insert(a, 1);
  table.insert(b, 2);

  EXPECT_TRUE(a->is_live && b->is_live);
}

TEST(SlotTable, RemembersABuriedSlotUntilEveryRankKnows) {
  SlotTable table(1, 2);
  const SlotPtr a = make_slot(1), b = make_slot(2);
  table.insert(a, 1);
  table.insert(b, 2);
  const uint32_t buried_at = a->buried_at;

  EXPECT_EQ(table.find(a->id), a.get());
  table.saw_view(0, buried_at);
  EXPECT_EQ(table.find(a->id), a.get()) << "rank 1 may still name it";
  table.saw_view(1, buried_at);
  EXPECT_EQ(table.find(a->id), nullptr);
}

TEST(SlotTable, TwoRanksThatApplyTheSameOperationsHaveTheSameTable) {
  SlotTable left(4, 2), right(4, 2);
  for (uint32_t step = 0; step < 200; ++step) {
    const uint64_t key = step * 2654435761u % 9;
    const SlotPtr a = make_slot(key), b = make_slot(key);
    left.insert(a, step);
    right.insert(b, step);
    ASSERT_EQ(a->id, b->id);
    ASSERT_EQ(left.version(), right.version());
    ASSERT_EQ(left.live_count(), right.live_count());
  }
}

TEST(SlotTable, WithoutCapacityKeepsNothing) {
  SlotTable table(0, 1);
  const SlotPtr a = make_slot(1);
  EXPECT_TRUE(table.insert(a, 1).empty());
  EXPECT_EQ(table.live_count(), 0u);
}

}  // namespace
}  // namespace hvd::negotiate
