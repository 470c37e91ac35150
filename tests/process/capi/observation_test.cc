// Statistics, timeline and the list of recent operations over the C ABI.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/support/c_api.h"
#include "tests/support/process_ranks.h"
#include "tests/support/reference.h"

namespace hvd::testing {
namespace {

using nlohmann::json;

void run_some(int times, const std::string& name, size_t count = 100) {
  for (int i = 0; i < times; ++i) {
    std::vector<float> values(count, 1.0f);
    ASSERT_EQ(float_allreduce(name, values).run(), HVD_OK) << hvd_last_error();
  }
}

TEST(CapiObservation, StatisticsCountOperationsBytesAndHits) {
  run_processes(2, [](RankProcess& rank) {
    run_some(1, "counted");
    const hvd_stats before = stats_now();

    run_some(50, "counted");

    const hvd_stats after = stats_now();
    EXPECT_EQ(after.operations - before.operations, 50u);
    EXPECT_EQ(after.bytes - before.bytes, 50u * 400u);
    EXPECT_EQ(after.failed_operations, before.failed_operations);
    EXPECT_GE(after.cache_hits - before.cache_hits, 50u);
    EXPECT_EQ(after.cache_misses, before.cache_misses);
    EXPECT_EQ(after.small_operations - before.small_operations, 50u);
    EXPECT_GE(after.cache_entries, 1u);

    std::vector<float> odd(rank.rank() == 0 ? 3 : 4);
    EXPECT_EQ(float_allreduce("odd", odd).run(), HVD_PRECONDITION_ERROR);
    EXPECT_EQ(stats_now().failed_operations - after.failed_operations, 1u);
  });
}

TEST(CapiObservation, StatisticsTellHowDataTravelled) {
  run_processes(2, [](RankProcess&) {
    const hvd_stats before = stats_now();
    run_some(3, "streamed", 500000);
    TestBuffer buffer(Placement::kShared, 2000000);
    for (int i = 0; i < 4; ++i) {
      ASSERT_EQ(Call(HVD_ALLREDUCE, "shared", HVD_FLOAT32, {500000}).in_place(buffer.data()).run(),
                HVD_OK)
          << hvd_last_error();
    }

    const hvd_stats after = stats_now();

    // The first operation of a name is negotiated in full, before anybody knows where buffers lie.
    EXPECT_EQ(after.shared_operations - before.shared_operations, 3u);
    EXPECT_EQ(after.streamed_operations - before.streamed_operations, 4u);
  });
}

TEST(CapiObservation, AFullCacheCountsEvictions) {
  ProcessOptions options;
  options.environment = {{"HOROVOD_CACHE_CAPACITY", "4"}};
  run_processes(
      2,
      [](RankProcess&) {
        for (int i = 0; i < 10; ++i) run_some(2, "t" + std::to_string(i));
        const hvd_stats stats = stats_now();
        EXPECT_LE(stats.cache_entries, 4u);
        EXPECT_GE(stats.cache_evictions, 6u);
      },
      options);
}

TEST(CapiObservation, RecentOperationsAreListedOldestFirst) {
  run_processes(2, [](RankProcess&) {
    run_some(1, "early/tensor");
    run_some(1, "late/tensor");
    const size_t length = hvd_recent_operations(nullptr, 0);
    std::string text(length + 1, '\0');

    EXPECT_EQ(hvd_recent_operations(text.data(), text.size()), length);

    text.resize(length);
    const size_t early = text.find("early/tensor");
    const size_t late = text.find("late/tensor");
    ASSERT_NE(early, std::string::npos) << text;
    ASSERT_NE(late, std::string::npos) << text;
    EXPECT_LT(early, late);
    EXPECT_NE(text.find('\n'), std::string::npos);

    char little[8];
    std::fill(std::begin(little), std::end(little), 'x');
    EXPECT_EQ(hvd_recent_operations(little, 4), length);
    EXPECT_EQ(little[4], 'x') << "wrote past the capacity";
  });
}

std::string recent_operations() {
  std::string text(hvd_recent_operations(nullptr, 0) + 1, '\0');
  hvd_recent_operations(text.data(), text.size());
  return text;
}

TEST(CapiObservation, UnnamedOperationsAreListedByKindAndNumber) {
  run_processes(2, [](RankProcess&) {
    run_some(3, "");
    const std::string text = recent_operations();
    EXPECT_NE(text.find("allreduce 'allreduce.noname.1'"), std::string::npos) << text;
    EXPECT_NE(text.find("allreduce 'allreduce.noname.3'"), std::string::npos) << text;
    EXPECT_EQ(text.find("allreduce.noname.4"), std::string::npos) << text;
  });
}

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              (name + "." + std::to_string(::getpid()) + ".json")) {}
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  std::string path() const { return path_.string(); }
  json parsed() const {
    std::ifstream file(path_);
    return json::parse(file, nullptr, false);
  }

 private:
  std::filesystem::path path_;
};

// Every "B" of a tensor has its "E": nesting is balanced per pid.
void expect_balanced(const json& events) {
  std::map<int, int> depth;
  for (const json& event : events) {
    const std::string phase = event.value("ph", "");
    if (phase == "B") ++depth[event["pid"].get<int>()];
    if (phase == "E") {
      EXPECT_GE(--depth[event["pid"].get<int>()], 0) << event.dump();
    }
  }
  for (const auto& [pid, open] : depth) EXPECT_EQ(open, 0) << "tensor " << pid;
}

std::set<std::string> event_names(const json& events) {
  std::set<std::string> names;
  for (const json& event : events) {
    names.insert(event.value("name", ""));
    if (event.contains("args") && event["args"].contains("name")) {
      names.insert(event["args"]["name"].get<std::string>());
    }
  }
  return names;
}

TEST(CapiObservation, TheTimelineOfRankZeroIsValidJson) {
  const TemporaryFile file("timeline");
  ProcessOptions options;
  options.environment = {{"HOROVOD_TIMELINE", file.path()}};

  run_processes(
      2,
      [](RankProcess&) {
        run_some(5, "grad/a");
        run_some(2, "grad/large", 300000);
        const std::vector<float> part(3);
        const hvd_handle handle =
            Call(HVD_ALLGATHER, "gather", HVD_FLOAT32, {3}).input(part.data()).submitted();
        finish(handle);
      },
      options);

  const json events = file.parsed();
  ASSERT_TRUE(events.is_array()) << "not valid JSON";
  expect_balanced(events);
  const auto names = event_names(events);
  for (const char* name : {"grad/a", "grad/large", "gather", "NEGOTIATE_ALLREDUCE", "ALLREDUCE",
                           "NEGOTIATE_ALLGATHER", "ALLGATHER"}) {
    EXPECT_TRUE(names.count(name) == 1) << name;
  }
}

TEST(CapiObservation, UnnamedOperationsHaveRowsOfTheirOwn) {
  const TemporaryFile file("unnamed_timeline");
  ProcessOptions options;
  options.environment = {{"HOROVOD_TIMELINE", file.path()}};

  run_processes(
      2,
      [](RankProcess&) {
        run_some(2, "");
        std::vector<float> values(6, 1.0f);
        ASSERT_EQ(Call(HVD_BROADCAST, "", HVD_FLOAT32, {6}).in_place(values.data()).root(0).run(),
                  HVD_OK);
        std::vector<float> a(3, 1.0f), b(4, 1.0f);
        const Call first = float_allreduce("", a), second = float_allreduce("", b);
        const hvd_request group[] = {first.request(), second.request()};
        ASSERT_EQ(hvd_run_group(group, 2, HVD_FOREVER), HVD_OK) << hvd_last_error();
      },
      options);

  const json events = file.parsed();
  ASSERT_TRUE(events.is_array()) << "not valid JSON";
  expect_balanced(events);
  const auto names = event_names(events);
  for (const char* name : {"allreduce.noname.1", "allreduce.noname.2", "broadcast.noname.1",
                           "allreduce.noname.3.0", "allreduce.noname.3.1"}) {
    EXPECT_EQ(names.count(name), 1u) << name;
  }
}

TEST(CapiObservation, TheTimelineTellsWhenEachRankWasReady) {
  const TemporaryFile file("ready_timeline");
  ProcessOptions options;
  options.environment = {{"HOROVOD_TIMELINE", file.path()}};
  static constexpr int kLateMs = 300;

  run_processes(
      3,
      [](RankProcess& rank) {
        ASSERT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_OK);
        // Rank 2 is late by more than ranks 0 and 1 can be.
        if (rank.rank() == 2) {
          EXPECT_FALSE(rank.board().wait_at_least(0, 1, std::chrono::milliseconds(kLateMs)));
        }
        run_some(1, "grad");
        ASSERT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_OK);
      },
      options);

  const json events = file.parsed();
  ASSERT_TRUE(events.is_array()) << "not valid JSON";
  std::map<std::string, uint64_t> ready;  // the barriers have no rows
  for (const json& event : events) {
    if (event.value("ph", "") == "X") ready[event["name"]] = event["ts"].get<uint64_t>();
  }
  ASSERT_EQ(ready.size(), 3u);
  EXPECT_LT(ready["0"] + 100'000, ready["2"]) << "rank 0 was ready long before rank 2";
  EXPECT_LT(ready["1"] + 100'000, ready["2"]) << "rank 1 was ready long before rank 2";
}

TEST(CapiObservation, ATimelineStartsAndStopsWhileTheJobRuns) {
  const TemporaryFile file("dynamic_timeline");
  ProcessOptions options;
  options.environment = {{"HOROVOD_TIMELINE", "DYNAMIC"}};

  run_processes(
      2,
      [&file](RankProcess&) {
        run_some(2, "before");
        ASSERT_EQ(hvd_timeline_start(file.path().c_str(), 1), HVD_OK) << hvd_last_error();
        ASSERT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_OK);
        run_some(5, "traced");
        ASSERT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_OK);
        ASSERT_EQ(hvd_timeline_stop(), HVD_OK) << hvd_last_error();
        ASSERT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_OK);
        run_some(2, "after");
      },
      options);

  const json events = file.parsed();
  ASSERT_TRUE(events.is_array()) << "not valid JSON";
  expect_balanced(events);
  const auto names = event_names(events);
  EXPECT_EQ(names.count("traced"), 1u);
  EXPECT_EQ(names.count("before"), 0u);
  EXPECT_EQ(names.count("after"), 0u);
  EXPECT_GE(names.count("CYCLE_START"), 1u);
}

TEST(CapiObservation, CyclesAreMarkedWhoeverDrives) {
  const TemporaryFile file("cycles");
  ProcessOptions options;
  options.environment = {{"HOROVOD_TIMELINE", file.path()}, {"HOROVOD_TIMELINE_MARK_CYCLES", "1"}};

  run_processes(
      2,
      [](RankProcess&) {
        for (int i = 0; i < 20; ++i) {
          std::vector<float> values(100, 1.0f);
          const hvd_handle handle = float_allreduce("cycles", values).submitted();
          ASSERT_EQ(hvd_wait(handle, HVD_FOREVER), HVD_OK) << hvd_last_error();
          ASSERT_EQ(hvd_release(handle), HVD_OK);
        }
      },
      options);

  const json events = file.parsed();
  ASSERT_TRUE(events.is_array()) << "not valid JSON";
  const auto is_mark = [](const json& event) { return event.value("name", "") == "CYCLE_START"; };
  EXPECT_GE(std::count_if(events.begin(), events.end(), is_mark), 20);
}

}  // namespace
}  // namespace hvd::testing
