// The order of operations, found by two readers that do not look at the same time.
#include "control/order.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "shm/job.h"
#include "wire/codec.h"

namespace hvd::control {
namespace {

constexpr int kRanks = 2;

// Slots are their own keys.
class PlainDirectory final : public Directory {
 public:
  std::optional<SlotIdentity> identify(uint32_t slot) override {
    if (gone.count(slot) > 0) return std::nullopt;
    return SlotIdentity{slot, false, wire::Kind::kAllreduce, std::make_shared<negotiate::Slot>()};
  }
  LocalOperation* local_operation(uint32_t index) override { return &operations_[index]; }
  uint32_t version() const override { return table_version; }
  void saw_view(int, uint32_t) override {}

  uint32_t table_version = 0;
  std::set<uint32_t> gone;  // slots that nobody can name any more

 private:
  struct PlainOperation final : LocalOperation {};
  std::map<uint32_t, PlainOperation> operations_;
};

// Two ranks of one process: streams that the test writes, and an Order for each reader.
class OrderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    shm::JobOptions options;
    options.arena_bytes = 1 << 20;
    auto jobs = shm::Job::in_process(kRanks, options);
    ASSERT_TRUE(jobs) << jobs.status().message();
    jobs_ = std::move(*jobs);
    board_ = Board(jobs_[0]->base() + jobs_[0]->channel_pool_offset(), kRanks);
    for (int me = 0; me < kRanks; ++me) {
      orders_.push_back(std::make_unique<Order>(board_, *jobs_[static_cast<size_t>(me)], directory_,
                                                kRanks, me, Deciders::kAll));
    }
  }

  // As a writer does: false if the ring is full.
  bool append(int rank, uint32_t slot, uint32_t view = 0) {
    uint32_t& tail = tails_[rank];
    for (int reader = 0; reader < kRanks; ++reader) {
      if (tail - board_.low(reader, rank).load() >= kRecords - 1) return false;
    }
    Record& record = board_.record(rank, tail);
    record.slot = slot;
    record.view = view;
    record.flags = kPayloadInline;
    record.length = sizeof slot;
    std::memcpy(record.payload, &slot, sizeof slot);
    record.seq.store(++tail, std::memory_order_release);
    return true;
  }

  Order& order(int me) { return *orders_[static_cast<size_t>(me)]; }

  // The next agreed operation of a reader; 0: there is none. Checks what every rank is said to have
  // written.
  uint32_t take(int me) {
    Order& order = this->order(me);
    const Look look = order.next();
    if (look == Look::kNothing) return 0;
    uint32_t slot = 0;
    if (look == Look::kUniform) {
      slot = order.slot();
      for (int rank = 0; rank < kRanks; ++rank) {
        EXPECT_EQ(order.record_of(rank).seq.load(), order.index_of(rank) + 1);
        EXPECT_EQ(std::memcmp(order.record_of(rank).payload, &slot, sizeof slot), 0);
      }
    } else if (look == Look::kMatched) {
      slot = order.marks()[0].slot;
      for (const Mark& mark : order.marks()) {
        EXPECT_TRUE(mark.present);
        EXPECT_EQ(mark.slot, slot);
        EXPECT_EQ(mark.payload_bytes, sizeof slot);
        if (mark.payload == nullptr) {
          ADD_FAILURE() << "operation " << slot << " has no payload";
        } else {
          EXPECT_EQ(std::memcmp(mark.payload, &slot, sizeof slot), 0) << slot;
        }
      }
    } else {
      ADD_FAILURE() << "reader " << me << ": " << order.failure().message();
      return 0;
    }
    order.consume();
    return slot;
  }

  std::vector<std::unique_ptr<shm::Job>> jobs_;
  Board board_;
  PlainDirectory directory_;
  std::vector<std::unique_ptr<Order>> orders_;
  uint32_t tails_[kRanks] = {0, 0};
};

// Ranks differ once, then agree on everything. Reader 1 decides and is back in lockstep at once;
// reader 0 looks when `backlog` records lie behind the decision, and has to copy them out. Returns
// the number of the next operation to be taken by reader 0.
class OrderBacklog : public OrderTest {
 protected:
  void differ_and_fall_behind(uint32_t backlog) {
    append(0, 1);
    append(0, 2);
    append(1, 2);
    append(1, 1);
    // Reader 1 finds both, the second with nothing left over.
    ASSERT_NE(take(1), 0u);
    ASSERT_NE(take(1), 0u);
    for (uint32_t slot = 10; slot < 10 + backlog; ++slot) {
      ASSERT_TRUE(append(0, slot));
      ASSERT_TRUE(append(1, slot));
    }
    // Reader 0 follows the first decision, and has seen everything.
    ASSERT_NE(take(0), 0u);
  }
};

TEST_F(OrderBacklog, WhatWasCopiedOutSurvivesTheReturnToLockstep) {
  constexpr uint32_t kBacklog = 400;  // more than half the ring, so it is copied out
  differ_and_fall_behind(kBacklog);
  for (uint32_t slot = 10; slot < 10 + kBacklog; ++slot) ASSERT_EQ(take(1), slot);

  // Both readers say that they need none of it: the writers use the places again.
  uint32_t end = 10 + kBacklog;
  while (append(0, end) && append(1, end)) ++end;
  ASSERT_GT(end, 10 + kRecords) << "the ring must have been used again for this test to mean much";

  ASSERT_NE(take(0), 0u);  // the decision that leads back to lockstep
  for (uint32_t slot = 10; slot < end; ++slot) ASSERT_EQ(take(0), slot) << "of " << end;
  for (uint32_t slot = 10 + kBacklog; slot < end; ++slot) ASSERT_EQ(take(1), slot);
  EXPECT_EQ(take(0), 0u);
  EXPECT_TRUE(order(0).check().is_ok()) << order(0).check().message();
}

TEST_F(OrderBacklog, WhatIsNoLongerNeededIsNeverNeededAgain) {
  differ_and_fall_behind(400);
  const uint32_t before = board_.low(0, 0).load();
  ASSERT_GT(before, 300u) << "copied out";

  while (take(0) != 0) EXPECT_GE(board_.low(0, 0).load(), before);
}

TEST_F(OrderBacklog, RanksMayDifferAgainWhileCopiesAreLeft) {
  constexpr uint32_t kBacklog = 300;
  differ_and_fall_behind(kBacklog);
  for (uint32_t slot = 10; slot < 10 + kBacklog; ++slot) ASSERT_EQ(take(1), slot);
  // Differ, be level, differ for good.
  for (const uint32_t slot : {5001u, 5002u, 5003u}) append(0, slot);
  for (const uint32_t slot : {5003u, 5001u, 5002u}) append(1, slot);
  uint32_t end = 6000;
  while (append(0, end) && append(1, end)) ++end;

  ASSERT_NE(take(0), 0u);
  for (uint32_t slot = 10; slot < 10 + kBacklog; ++slot) ASSERT_EQ(take(0), slot);
  std::vector<uint32_t> seen[kRanks];
  for (int round = 0; round < 2000; ++round) {
    for (int me = 0; me < kRanks; ++me) {
      if (const uint32_t slot = take(me); slot != 0) seen[me].push_back(slot);
    }
  }
  EXPECT_EQ(seen[0], seen[1]) << "the order is the same everywhere";
  EXPECT_EQ(seen[0].size(), 3 + (end - 6000));
}

TEST_F(OrderBacklog, AStallReportAndAFailureSeeWhatIsKept) {
  differ_and_fall_behind(300);
  for (uint32_t slot = 10; slot < 310; ++slot) ASSERT_EQ(take(1), slot);
  ASSERT_NE(take(0), 0u);

  std::vector<uint32_t> slots;
  order(0).for_unagreed(0, [&](const Mark& mark) { slots.push_back(mark.slot); });
  EXPECT_EQ(slots.size(), 300u);
  EXPECT_EQ(slots.front(), 10u);
  EXPECT_EQ(slots.back(), 309u);
  EXPECT_GE(order(0).pending_locals().size(), 256u) << "own operations behind copies";
  order(0).abandon(tails_[0]);
  EXPECT_TRUE(order(0).pending_locals().empty());
}

// Ranks differ, so that log mode begins; slot 3 is behind what is open.
class OrderReading : public OrderTest {
 protected:
  void differ() {
    append(0, 1);
    append(0, 2);
    append(1, 2);
  }
};

TEST_F(OrderReading, ARecordIsReadWhenTheTableIsAsNewAsItsView) {
  differ();
  ASSERT_EQ(take(1), 2u);  // decides; its rank has a newer table from now on
  append(0, 3, 1);
  append(1, 3, 1);
  append(1, 1, 1);
  directory_.gone = {3};  // not made here yet

  EXPECT_EQ(take(0), 2u);
  directory_.table_version = 1;
  directory_.gone.clear();

  EXPECT_EQ(take(0), 3u);
  EXPECT_EQ(take(0), 1u);
}

TEST_F(OrderReading, AViewThatNoDecisionLeadsToIsCorrupt) {
  differ();
  ASSERT_EQ(take(0), 2u);
  append(1, 1, 5);

  const Look look = order(0).next();

  ASSERT_EQ(look, Look::kFailed);
  EXPECT_EQ(order(0).failure().code(), StatusCode::kCorrupted);
  EXPECT_NE(order(0).failure().message().find("knows version 5"), std::string::npos)
      << order(0).failure().message();
}

TEST_F(OrderReading, AViewThatIsTooNewInLockstepIsCorrupt) {
  append(0, 1, 3);
  append(1, 2);

  ASSERT_EQ(order(0).next(), Look::kFailed);
  EXPECT_EQ(order(0).failure().code(), StatusCode::kCorrupted);
}

TEST_F(OrderReading, WhatWasReadIsNotLookedUpAgainBackInLockstep) {
  differ();
  append(1, 1);
  // Reader 1 decides both, the second with nothing left over; then reader 0 reads on, up to slot 4.
  ASSERT_NE(take(1), 0u);
  ASSERT_NE(take(1), 0u);
  for (const uint32_t slot : {3u, 4u}) {
    append(0, slot);
    append(1, slot);
  }
  ASSERT_NE(take(0), 0u);
  ASSERT_TRUE(order(0).is_in_log_mode());

  directory_.gone = {3, 4};  // evicted, and forgotten because everything was read

  EXPECT_NE(take(0), 0u);
  EXPECT_FALSE(order(0).is_in_log_mode());
  EXPECT_EQ(take(0), 3u);
  EXPECT_EQ(take(0), 4u);
}

}  // namespace
}  // namespace hvd::control
