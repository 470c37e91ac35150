#include "trace/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "base/fake_clock.h"
#include "base/text.h"
#include "tests/support/eventually.h"
#include "tests/unit/trace/temporary_file.h"
#include "tests/unit/trace/trace_checks.h"

namespace hvd::trace {
namespace {

using std::chrono::microseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kPlenty = uint64_t{1} << 30;

class TimelineTest : public ::testing::Test {
 protected:
  std::unique_ptr<Timeline> open(const std::string& name, uint64_t max_bytes = kPlenty,
                                 const Clock& clock = Clock::steady()) {
    auto timeline = Timeline::open(directory_.file(name), max_bytes, clock);
    EXPECT_TRUE(timeline.is_ok()) << timeline.status().message();
    return *std::move(timeline);
  }
  Json read(const std::string& name) { return Json::parse(read_file(directory_.file(name))); }

  TemporaryDirectory directory_;
};

void report_operation(Timeline& timeline, std::string_view tensor) {
  timeline.negotiate_start(tensor, "ALLREDUCE");
  timeline.rank_ready(tensor, 0, Nanoseconds(0));
  timeline.rank_ready(tensor, 1, Nanoseconds(0));
  timeline.negotiate_end(tensor);
  timeline.start(tensor, "ALLREDUCE");
  timeline.activity_start(tensor, "MEMCPY_IN_SHARED_BUFFER");
  timeline.activity_end(tensor);
  timeline.end(tensor, "float32", "[2, 3]");
}

TEST_F(TimelineTest, WritesWhatEachTensorDid) {
  auto timeline = open("t.json");
  report_operation(*timeline, "grad");
  timeline.reset();

  const Json trace = read("t.json");

  expect_well_formed(trace);
  EXPECT_THAT(steps_of(trace, "grad"),
              ElementsAre("B:NEGOTIATE_ALLREDUCE", "X:0", "X:1", "E", "B:ALLREDUCE",
                          "B:MEMCPY_IN_SHARED_BUFFER", "E", "E"));
  EXPECT_EQ(trace.back()["args"], Json::parse(R"({"dtype":"float32","shape":"[2, 3]"})"));
}

TEST_F(TimelineTest, StampsEventsWithMicrosecondsSinceOpen) {
  FakeClock clock;
  clock.advance(std::chrono::hours(5));
  auto timeline = open("t.json", kPlenty, clock);
  clock.advance(microseconds(10));
  timeline->start("g", "BROADCAST");
  clock.advance(microseconds(32));
  timeline->end("g", "", "");
  timeline.reset();

  const Json trace = read("t.json");

  EXPECT_EQ(trace[trace.size() - 2]["ts"], 10);
  EXPECT_EQ(trace[trace.size() - 1]["ts"], 42);
}

TEST_F(TimelineTest, HeaderTellsWhenTheTraceStarted) {
  const auto now = [] {
    const auto time = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<microseconds>(time).count();
  };
  const auto before = now();
  open("t.json").reset();
  const auto after = now();

  const int64_t start = read("t.json")[0]["args"]["start_time_since_epoch_in_micros"];

  EXPECT_GE(start, before);
  EXPECT_LE(start, after);
}

TEST_F(TimelineTest, IsValidJsonFromTheFirstMomentAndAfterEveryFlush) {
  auto timeline = open("t.json");
  EXPECT_EQ(read("t.json").size(), 2u);

  for (int i = 1; i <= 20; ++i) {
    timeline->mark_cycle();
    ASSERT_TRUE(timeline->flush().is_ok());
    EXPECT_EQ(read("t.json").size(), 2u + static_cast<size_t>(i));
  }
}

TEST_F(TimelineTest, FlushShowsLevelsThatAreStillOpen) {
  auto timeline = open("t.json");
  timeline->start("g", "ALLGATHER");

  ASSERT_TRUE(timeline->flush().is_ok());

  EXPECT_THAT(steps_of(read("t.json"), "g"), ElementsAre("B:ALLGATHER"));
  timeline.reset();
  EXPECT_THAT(steps_of(read("t.json"), "g"), ElementsAre("B:ALLGATHER", "E"));
}

TEST_F(TimelineTest, MayBeStoppedAndStartedAgainInTheMiddleOfAnOperation) {
  auto first = open("1.json");
  first->start("g", "ALLREDUCE");
  first->activity_start("g", "A");
  first.reset();
  auto second = open("2.json");
  second->activity_end("g");
  second->end("g", "float32", "[1]");
  report_operation(*second, "h");
  second.reset();
  auto again = open("1.json");
  report_operation(*again, "i");
  again.reset();

  expect_well_formed(read("2.json"));
  EXPECT_THAT(pids_of(read("2.json")), ElementsAre(std::pair("h", 1)));
  expect_well_formed(read("1.json"));
  EXPECT_THAT(pids_of(read("1.json")), ElementsAre(std::pair("i", 1)));
}

TEST_F(TimelineTest, TakesEventsFromSeveralThreads) {
  constexpr int kOperations = 2000;
  auto timeline = open("t.json");
  {
    std::vector<std::jthread> threads;
    for (const char* name : {"a", "b"}) {
      threads.emplace_back([&timeline, name] {
        for (int i = 0; i < kOperations; ++i) report_operation(*timeline, name);
      });
    }
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(timeline->flush().is_ok());
  }
  timeline.reset();

  const Json trace = read("t.json");

  expect_well_formed(trace);
  EXPECT_EQ(steps_of(trace, "a").size(), size_t{kOperations} * 8);
  EXPECT_EQ(steps_of(trace, "b").size(), size_t{kOperations} * 8);
  EXPECT_EQ(dropped_in(trace), 0u);
}

TEST_F(TimelineTest, KeepsToItsSizeAndSaysWhatIsMissing) {
  constexpr uint64_t kLimit = 20'000;
  auto timeline = open("t.json", kLimit);
  for (int i = 0; i < 1000; ++i) report_operation(*timeline, concat("tensor.", i));
  timeline.reset();

  const Json trace = read("t.json");

  EXPECT_LE(std::filesystem::file_size(directory_.file("t.json")), kLimit);
  expect_well_formed(trace);
  EXPECT_GT(dropped_in(trace), 7000u);
}

TEST_F(TimelineTest, TakesNamesOfAnyLengthAndBytes) {
  const std::string name = std::string(200'000, 'n') + "\xFF\"\n";
  auto timeline = open("t.json");
  report_operation(*timeline, name);
  timeline.reset();

  EXPECT_EQ(steps_of(read("t.json"), std::string(200'000, 'n') + "\uFFFD\"\n").size(), 8u);
}

TEST_F(TimelineTest, RefusesAPathItCannotWrite) {
  const auto timeline = Timeline::open("/no/such/folder/t.json", kPlenty);

  EXPECT_EQ(timeline.status().message(),
            "cannot open timeline file '/no/such/folder/t.json': No such file or directory");
}

TEST_F(TimelineTest, RefusesALimitTooSmallForItsHeader) {
  const auto timeline = Timeline::open(directory_.file("t.json"), 100);

  EXPECT_EQ(timeline.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(timeline.status().message(), HasSubstr("at least 4096 bytes, got 100"));
}

TEST_F(TimelineTest, KnowsItsPath) { EXPECT_EQ(open("t.json")->path(), directory_.file("t.json")); }

std::string names_of_threads() {
  std::string names;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    names += read_file(entry.path() / "comm");
  }
  return names;
}

TEST_F(TimelineTest, WriterHasANameAndGoesWithTheTimeline) {
  auto timeline = open("t.json");
  timeline->mark_cycle();
  ASSERT_TRUE(timeline->flush().is_ok());  // the thread has run, so it has its name
  EXPECT_THAT(names_of_threads(), HasSubstr("hvd-timeline"));

  timeline.reset();
  EXPECT_TRUE(hvd::testing::eventually(
      [] { return names_of_threads().find("hvd-timeline") == std::string::npos; }));
}

}  // namespace
}  // namespace hvd::trace
