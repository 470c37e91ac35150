// A damaged segment ends in a clear Status on every rank that waits: never a hang or a crash.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>

#include "collective/shared_memory/link.h"
#include "control/board.h"
#include "tests/support/process_ranks.h"
#include "tests/support/thread_ranks.h"

namespace hvd::testing {
namespace {

constexpr int kRanks = 2;

// Rank 1 damages the segment while rank 0 waits, then waits too.
void damage_and_wait(const std::function<void(shm::Job&)>& damage) {
  std::vector<shm::Job*> jobs;
  ThreadOptions options;
  options.with_jobs = [&](const std::vector<shm::Job*>& all) { jobs = all; };
  std::atomic<int> ready{0};
  run_ranks(
      kRanks,
      [&](TestRank& r) {
        std::vector<float> data(20000, 1.0f);
        ASSERT_TRUE(
            r.run(EngineCall{.name = "before", .shape = {20000}}, data.data(), data.data()));
        ++ready;
        while (ready < kRanks) std::this_thread::yield();
        if (r.rank() == 1) damage(*jobs[1]);
        const EngineCall call{.name = r.rank() == 0 ? "left" : "right", .shape = {20000}};
        const Status status = r.run(call, data.data(), data.data(),
                                    Deadline::after(std::chrono::seconds(10 * kTimeFactor)));
        EXPECT_EQ(status.code(), StatusCode::kCorrupted)
            << "rank " << r.rank() << ": " << status.message();
        // The engine has failed: the next call says the same at once.
        EXPECT_EQ(r.run(call, data.data(), data.data()).code(), StatusCode::kCorrupted);
      },
      options);
}

control::Board global_board(shm::Job& job) {
  return control::Board(job.base() + job.header().channel_pool_offset, kRanks);
}

TEST(Corruption, OfTheHeaderIsReportedOnAllRanks) {
  damage_and_wait([](shm::Job& job) { job.header().magic ^= 0xff; });
}

TEST(Corruption, OfARecordNumberIsReportedOnAllRanks) {
  damage_and_wait([](shm::Job& job) {
    for (uint32_t i = 0; i < control::kRecords; ++i)
      global_board(job).record(0, i).seq.fetch_or(0x40000000u);
    for (uint32_t i = 0; i < control::kRecords; ++i)
      global_board(job).record(1, i).seq.fetch_or(0x40000000u);
  });
}

// What rank 1 seems to have submitted after the operation that it is about to submit.
control::Record& forged_record(shm::Job& job) {
  const control::Board board = global_board(job);
  uint32_t index = 0;
  while (board.has(1, index)) ++index;
  control::Record& record = board.record(1, index + 1);
  record.seq.store(index + 2);
  return record;
}

TEST(Corruption, OfARequestMessageIsReportedOnAllRanks) {
  damage_and_wait([](shm::Job& job) {
    control::Record& record = forged_record(job);
    std::memset(record.payload, 0xa5, sizeof record.payload);
    record.slot = control::kNoSlot;
    record.length = 50;
    record.flags = control::kPayloadInline;
  });
}

TEST(Corruption, OfAPayloadOffsetIsReportedOnAllRanks) {
  damage_and_wait([](shm::Job& job) {
    control::Record& record = forged_record(job);
    record.slot = control::kNoSlot;
    record.offset = 0xfffffff0u;
    record.length = 0x7fffffff;
    record.flags = control::kPayloadEager;
  });
}

TEST(Corruption, OfASlotNumberIsReportedOnAllRanks) {
  damage_and_wait([](shm::Job& job) {
    control::Record& record = forged_record(job);
    record.slot = 123456;
    record.length = 4;
    record.flags = control::kPayloadInline;
  });
}

// Words that one rank writes and others only read: that rank notices.
TEST(Corruption, OfAReadersPositionIsReportedOnAllRanks) {
  damage_and_wait([](shm::Job& job) { global_board(job).low(1, 0).fetch_sub(1); });
  damage_and_wait([](shm::Job& job) { global_board(job).low(1, 0).fetch_add(300); });
}

TEST(Corruption, OfAPositionInTheDecisionLogIsReportedOnAllRanks) {
  damage_and_wait([](shm::Job& job) { global_board(job).log_seen(1).fetch_add(2); });
}

TEST(Corruption, OfADataCounterThatIsSetSlightlyBackIsReportedOnAllRanks) {
  damage_and_wait([](shm::Job& job) {
    const uint64_t board_bytes = align_up(control::Board::region_bytes(kRanks), 4096);
    collective::shared_memory::Link link(job, job.base() + job.channel_pool_offset() + board_bytes,
                                         kRanks, 1, std::array{0, 1}.data());
    link.ready(1).fetch_sub(1);
  });
}

TEST(Corruption, OfTheStateOfARankIsReportedOnAllRanks) {
  damage_and_wait([](shm::Job& job) { job.mine().state.store(7); });
}

TEST(Corruption, OfTheRoleWordIsReportedOnAllRanks) {
  for (const uint32_t bit : {shm::kRoleBit, shm::kSubmitBit}) {
    SCOPED_TRACE(bit);
    damage_and_wait([bit](shm::Job& job) { job.mine().role.fetch_or(bit); });
  }
}

TEST(Corruption, OfTheDecisionLogIsReportedOnAllRanks) {
  damage_and_wait([](shm::Job& job) {
    const control::Board board = global_board(job);
    for (uint32_t i = 0; i < control::kLogEntries; ++i)
      board.log(i).store(uint64_t{1} << 48 | uint64_t{77} << 32 | 5);
  });
}

}  // namespace
}  // namespace hvd::testing
