#include "trace/encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "base/text.h"
#include "tests/unit/trace/trace_checks.h"

namespace hvd::trace {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kNoLimit = uint64_t{1} << 40;

// An encoder with its output, and one microsecond per event.
class Trace {
 public:
  explicit Trace(uint64_t max_bytes = kNoLimit) : encoder_(max_bytes) {
    encoder_.header(1234, text_);
  }

  Trace& add(Event event) {
    event.micros = ++micros_;
    encoder_.add(event, text_);
    return *this;
  }
  Trace& add_at(uint64_t micros, Event event) {
    event.micros = micros;
    encoder_.add(event, text_);
    return *this;
  }
  Trace& negotiate_start(std::string_view tensor) {
    return add({.kind = EventKind::kNegotiateStart, .tensor = tensor, .word = "ALLREDUCE"});
  }
  Trace& rank_ready(std::string_view tensor, int rank) {
    return add({.kind = EventKind::kRankReady, .number = rank, .tensor = tensor});
  }
  Trace& negotiate_end(std::string_view tensor) {
    return add({.kind = EventKind::kNegotiateEnd, .tensor = tensor});
  }
  Trace& start(std::string_view tensor) {
    return add({.kind = EventKind::kStart, .tensor = tensor, .word = "ALLREDUCE"});
  }
  Trace& activity_start(std::string_view tensor, std::string_view name) {
    return add({.kind = EventKind::kActivityStart, .tensor = tensor, .word = name});
  }
  Trace& activity_end(std::string_view tensor) {
    return add({.kind = EventKind::kActivityEnd, .tensor = tensor});
  }
  Trace& end(std::string_view tensor) {
    return add({.kind = EventKind::kEnd, .tensor = tensor, .word = "float32", .shape = "[4]"});
  }
  Trace& fail(std::string_view tensor) { return add({.kind = EventKind::kEnd, .tensor = tensor}); }

  // Closes the trace.
  Json finish(uint64_t dropped_before = 0) {
    encoder_.finish(++micros_, dropped_before, text_);
    return Json::parse(file_text());
  }
  std::string file_text() const { return concat("[\n", text_, "\n]"); }

 private:
  Encoder encoder_;
  std::string text_;
  uint64_t micros_ = 0;
};

TEST(Encoder, ShowsARankThatWasReadyEarlierWhereTheNegotiationBegins) {
  Trace trace;
  trace.negotiate_start("early").negotiate_start("g");
  trace.add_at(1, {.kind = EventKind::kRankReady, .number = 3, .tensor = "g"});

  EXPECT_EQ(trace.finish().at(8), Json::parse(R"({"ph":"X","name":"3","ts":2,"pid":2,"dur":0})"));
}

TEST(Encoder, MarksWhatConcernsAllTensors) {
  Trace trace;
  trace.add({.kind = EventKind::kMark, .word = "TUNING chunk_bytes=65536"});

  EXPECT_EQ(trace.finish().at(2),
            Json::parse(R"({"ph":"i","name":"TUNING chunk_bytes=65536","ts":1,"s":"g"})"));
}

TEST(Encoder, WritesTheRecordsOfTheFormat) {
  Trace trace;
  trace.negotiate_start("g").rank_ready("g", 1).negotiate_end("g").start("g");
  trace.activity_start("g", "MEMCPY").activity_end("g").end("g").add({.kind = EventKind::kCycle});

  EXPECT_EQ(trace.finish(), Json::parse(R"([
    {"name":"process_name","ph":"M","pid":0,"args":{"start_time_since_epoch_in_micros":1234}},
    {"name":"process_sort_index","ph":"M","pid":0,"args":{"sort_index":0}},
    {"name":"process_name","ph":"M","pid":1,"args":{"name":"g"}},
    {"name":"process_sort_index","ph":"M","pid":1,"args":{"sort_index":1}},
    {"ph":"B","name":"NEGOTIATE_ALLREDUCE","ts":1,"pid":1},
    {"ph":"X","name":"1","ts":2,"pid":1,"dur":0},
    {"ph":"E","ts":3,"pid":1},
    {"ph":"B","name":"ALLREDUCE","ts":4,"pid":1},
    {"ph":"B","name":"MEMCPY","ts":5,"pid":1},
    {"ph":"E","ts":6,"pid":1},
    {"ph":"E","ts":7,"pid":1,"args":{"dtype":"float32","shape":"[4]"}},
    {"ph":"i","name":"CYCLE_START","ts":8,"s":"g"}
  ])"));
}

TEST(Encoder, NumbersTensorsByFirstAppearance) {
  Trace trace;
  trace.start("b").start("a").end("b").end("a").start("b").end("b");

  const Json records = trace.finish();

  EXPECT_EQ(pids_of(records), (std::map<std::string, int>{{"b", 1}, {"a", 2}}));
  expect_well_formed(records);
}

TEST(Encoder, EndOfAFailedOperationHasNoArguments) {
  Trace trace;
  trace.start("g").fail("g");

  EXPECT_FALSE(trace.finish().back().contains("args"));
}

TEST(Encoder, EndClosesLevelsThatAreStillOpen) {
  Trace trace;
  trace.start("g").activity_start("g", "A").activity_start("g", "B").end("g");

  const Json records = trace.finish();

  EXPECT_THAT(steps_of(records, "g"), ElementsAre("B:ALLREDUCE", "B:A", "B:B", "E", "E", "E"));
  EXPECT_TRUE(records.back().contains("args"));
}

TEST(Encoder, EndDuringNegotiationClosesIt) {
  Trace trace;
  trace.negotiate_start("g").fail("g").negotiate_end("g");

  EXPECT_THAT(steps_of(trace.finish(), "g"), ElementsAre("B:NEGOTIATE_ALLREDUCE", "E"));
}

TEST(Encoder, ANewBeginClosesWhatWasLeftOpen) {
  Trace trace;
  trace.start("g").activity_start("g", "A").negotiate_start("g").start("g").end("g");

  EXPECT_THAT(steps_of(trace.finish(), "g"), ElementsAre("B:ALLREDUCE", "B:A", "E", "E",  //
                                                         "B:NEGOTIATE_ALLREDUCE", "E",    //
                                                         "B:ALLREDUCE", "E"));
}

TEST(Encoder, IgnoresEventsWhoseBeginWasBeforeTheTrace) {
  Trace trace;
  trace.rank_ready("g", 0).negotiate_end("g").activity_start("g", "A").activity_end("g").end("g");
  trace.start("h").activity_end("h").rank_ready("h", 0).negotiate_end("h").end("h").end("h");

  const Json records = trace.finish();

  EXPECT_FALSE(pids_of(records).contains("g"));
  EXPECT_THAT(steps_of(records, "h"), ElementsAre("B:ALLREDUCE", "E"));
  EXPECT_EQ(dropped_in(records), 0u);
}

TEST(Encoder, FinishClosesEverything) {
  Trace trace;
  trace.negotiate_start("a").start("b").activity_start("b", "A");

  expect_well_formed(trace.finish());
}

TEST(Encoder, ANoteSaysHowManyEventsWereDroppedBeforeIt) {
  const Json last = Trace().finish(3).back();

  EXPECT_EQ(last,
            Json::parse(R"({"ph":"i","name":"EVENTS_DROPPED","ts":1,"s":"g","args":{"count":3}})"));
}

TEST(Encoder, EscapesNames) {
  Trace trace;
  trace.start("a\"\n\xFF").activity_start("a\"\n\xFF", "\\").end("a\"\n\xFF");

  EXPECT_THAT(steps_of(trace.finish(), "a\"\n\uFFFD"),
              ElementsAre("B:ALLREDUCE", "B:\\", "E", "E"));
}

TEST(Encoder, StopsAtTheLimitWithEveryLevelClosed) {
  constexpr uint64_t kLimit = 5000;
  Trace trace(kLimit);
  trace.start("outer").activity_start("outer", "A");
  for (int i = 0; i < 100; ++i) trace.start(concat("t", i)).end(concat("t", i));
  trace.activity_start("outer", "B").activity_end("outer").activity_end("outer").end("outer");

  const Json records = trace.finish();

  EXPECT_LE(trace.file_text().size(), kLimit);
  EXPECT_GT(trace.file_text().size(), kLimit - 400);
  expect_well_formed(records);
  EXPECT_THAT(steps_of(records, "outer"), ElementsAre("B:ALLREDUCE", "B:A", "E", "E"));
  const uint64_t written_tensors = pids_of(records).size() - 1;
  // Both events of each tensor that has no room, and both of the activity B.
  EXPECT_EQ(dropped_in(records), 2 * (100 - written_tensors) + 2);
}

// Real times are kept: what was open at the limit ends when it ended, not when the limit came.
TEST(Encoder, LevelsOpenAtTheLimitEndWhenTheyEnd) {
  Trace trace(4096);
  trace.start("outer");
  for (int i = 0; i < 100; ++i) trace.add({.kind = EventKind::kCycle});
  trace.end("outer");

  const Json records = trace.finish();

  const Json& end = records[records.size() - 2];
  EXPECT_EQ(end["ph"], "E");
  EXPECT_EQ(end["ts"], 102);
}

// Any mix of events, at any limit, gives a valid, balanced file within the limit.
TEST(Encoder, StaysBalancedAndBoundedForRandomEvents) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const uint64_t limit = 4096 + random() % 20'000;
    Trace trace(limit);
    for (int i = 0; i < 300; ++i) {
      Event event{.kind = static_cast<EventKind>(random() % 8),
                  .number = static_cast<int>(random() % 4)};
      const std::string name(1 + random() % 3, static_cast<char>('a' + random() % 3));
      const std::string word(random() % 60, 'w');
      event.tensor = name;
      event.word = word;
      event.shape = word;
      trace.add(event);
    }

    const Json records = trace.finish(random() % 2);

    ASSERT_LE(trace.file_text().size(), limit);
    expect_well_formed(records);
    if (::testing::Test::HasFailure()) FAIL() << "round " << round;
  }
}

}  // namespace
}  // namespace hvd::trace
