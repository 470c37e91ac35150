#include "trace/event_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/fake_clock.h"
#include "base/text.h"

namespace hvd::trace {
namespace {

using ::testing::ElementsAre;

std::string describe(const Event& event) {
  return concat(static_cast<int>(event.kind), " ", event.micros, " ", event.number, " ",
                event.tensor, " ", event.word, " ", event.shape);
}

// Everything queued so far, in order.
std::vector<std::string> take_all(EventQueue& queue) {
  std::stop_source source;
  source.request_stop();
  std::vector<std::string> events;
  while (auto block = queue.take(source.get_token())) {
    block->for_each([&](const Event& event) { events.push_back(describe(event)); });
    queue.finish(std::move(*block));
  }
  return events;
}

TEST(EventQueue, GivesBackEventsInOrderWithTheirTimes) {
  FakeClock clock;
  EventQueue queue(clock, {});

  queue.push({.kind = EventKind::kStart, .tensor = "a", .word = "ALLREDUCE"});
  clock.advance(std::chrono::microseconds(7));
  queue.push({.kind = EventKind::kEnd, .tensor = "a", .word = "float32", .shape = "[2, 3]"});
  queue.push({.kind = EventKind::kRankReady, .number = 5, .tensor = "b"});

  EXPECT_THAT(take_all(queue),
              ElementsAre("3 0 0 a ALLREDUCE ", "6 7 0 a float32 [2, 3]", "1 7 5 b  "));
}

TEST(EventQueue, CopiesTheStringsItIsGiven) {
  FakeClock clock;
  EventQueue queue(clock, {});
  std::string name = "name";
  queue.push({.kind = EventKind::kStart, .tensor = name, .word = "X"});

  name = "gone";

  EXPECT_THAT(take_all(queue), ElementsAre("3 0 0 name X "));
}

TEST(EventQueue, DropsAndCountsWhatIsBeyondTheLimit) {
  FakeClock clock;
  EventQueue queue(clock, {.events = 3});
  for (int i = 0; i < 5; ++i) queue.push({.kind = EventKind::kRankReady, .number = i});

  EXPECT_EQ(queue.dropped(), 2u);
  EXPECT_EQ(take_all(queue).size(), 3u);

  queue.push({.kind = EventKind::kCycle});
  EXPECT_EQ(queue.dropped(), 2u);
  EXPECT_EQ(take_all(queue).size(), 1u);
}

TEST(EventQueue, KeepsToItsLimitOfBytes) {
  FakeClock clock;
  EventQueue queue(clock, {.bytes = 1 << 20});
  const std::string name(200 << 10, 'n');

  for (int i = 0; i < 10; ++i) queue.push({.kind = EventKind::kStart, .tensor = name});

  EXPECT_EQ(queue.dropped(), 5u);
  EXPECT_EQ(take_all(queue).size(), 5u);
}

TEST(EventQueue, HoldsManyBlocks) {
  FakeClock clock;
  EventQueue queue(clock, {});
  constexpr int kCount = 20'000;
  for (int i = 0; i < kCount; ++i)
    queue.push({.kind = EventKind::kRankReady, .number = i, .tensor = "t"});

  const auto events = take_all(queue);

  ASSERT_EQ(events.size(), size_t{kCount});
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(events[i], concat("1 0 ", i, " t  "));
}

TEST(EventQueue, EndsOnlyWhenStoppedAndEmpty) {
  FakeClock clock;
  EventQueue queue(clock, {});
  std::stop_source source;
  queue.push({.kind = EventKind::kCycle});
  source.request_stop();

  auto block = queue.take(source.get_token());
  ASSERT_TRUE(block.has_value());
  queue.finish(std::move(*block));

  EXPECT_FALSE(queue.take(source.get_token()).has_value());
}

TEST(EventQueue, WakesAWriterThatSleeps) {
  EventQueue queue(Clock::steady(), {});
  std::atomic<int> seen = 0;
  std::jthread writer([&](const std::stop_token& stop) {
    while (auto block = queue.take(stop)) {
      seen += static_cast<int>(block->event_count());
      queue.finish(std::move(*block));
    }
  });

  for (int round = 1; round <= 50; ++round) {
    queue.push({.kind = EventKind::kCycle});
    queue.wait_until_written();
    EXPECT_EQ(seen, round);
  }
}

TEST(EventQueue, WaitingForNothingReturnsAtOnce) {
  FakeClock clock;
  EventQueue queue(clock, {});

  queue.wait_until_written();

  EXPECT_EQ(queue.dropped(), 0u);
}

}  // namespace
}  // namespace hvd::trace
