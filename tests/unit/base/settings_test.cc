#include "base/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "base/fake_environment.h"
#include "horovod/hvd.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Variables = std::map<std::string, std::string>;

Settings read_valid(const Variables& variables) {
  auto settings = read_settings(fake_environment(variables));
  EXPECT_TRUE(settings.is_ok()) << settings.status().message();
  return settings.is_ok() ? *std::move(settings) : Settings{};
}

std::string error_of(const Variables& variables) {
  const auto settings = read_settings(fake_environment(variables));
  if (settings.is_ok()) return "no error";
  EXPECT_EQ(settings.status().code(), StatusCode::kInvalidArgument);
  return settings.status().message();
}

TEST(Settings, AreTheDefaultsWhenNothingIsSet) { EXPECT_EQ(read_valid({}), Settings{}); }

TEST(Settings, EqualTheStructWhenEveryVariableIsSetToItsDocumentedDefault) {
  Variables variables;
  for (const SettingInfo& info : describe_settings()) variables[info.name] = info.default_value;

  EXPECT_EQ(read_valid(variables), Settings{});
}

TEST(Settings, AreUnchangedByEmptyAndBlankValues) {
  for (const char* blank : {"", " ", "\t"}) {
    Variables variables;
    for (const SettingInfo& info : describe_settings()) variables[info.name] = blank;

    EXPECT_EQ(read_valid(variables), Settings{});
  }
}

TEST(Settings, AreReadIntoTheirFields) {
  const Settings settings = read_valid({
      {"HOROVOD_FUSION_THRESHOLD", "0"},
      {"HOROVOD_CYCLE_TIME", "3.5"},
      {"HOROVOD_CACHE_CAPACITY", "2048"},
      {"HOROVOD_PROGRESS", "background"},
      {"HOROVOD_DYNAMIC_PROCESS_SETS", "1"},
      {"HOROVOD_ELASTIC", "1"},
      {"HOROVOD_THREAD_AFFINITY", "4,2,0"},
      {"HOROVOD_STALL_CHECK_DISABLE", "1"},
      {"HOROVOD_STALL_CHECK_TIME_SECONDS", "5"},
      {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "6"},
      {"HOROVOD_FROZEN_PEER_TIME_SECONDS", "0.25"},
      {"HOROVOD_GLOO_TIMEOUT_SECONDS", "7"},
      {"HOROVOD_TIMELINE", "/some dir/t.json"},
      {"HOROVOD_TIMELINE_MARK_CYCLES", "1"},
      {"HOROVOD_TIMELINE_MAX_BYTES", "8192"},
      {"HOROVOD_LOG_LEVEL", "DEBUG"},
      {"HOROVOD_LOG_HIDE_TIME", "1"},
      {"HOROVOD_SHM_BUFFER_BYTES", "65536"},
      {"HOROVOD_SPIN_COUNT", "10"},
      {"HOROVOD_YIELD_COUNT", "0"},
  });

  EXPECT_EQ(settings.fusion_threshold_bytes, 0);
  EXPECT_EQ(settings.cycle_time_ms, 3.5);
  EXPECT_EQ(settings.cache_capacity, 2048);
  EXPECT_EQ(settings.progress, ProgressPolicy::kBackground);
  EXPECT_TRUE(settings.dynamic_process_sets);
  EXPECT_TRUE(settings.elastic);
  EXPECT_THAT(settings.thread_affinity, ElementsAre(4, 2, 0));
  EXPECT_TRUE(settings.stall_check_disable);
  EXPECT_EQ(settings.stall_check_time, seconds(5));
  EXPECT_EQ(settings.stall_shutdown_time, seconds(6));
  EXPECT_EQ(settings.frozen_peer_time, milliseconds(250));
  EXPECT_EQ(settings.rendezvous_timeout, seconds(7));
  EXPECT_EQ(settings.timeline, "/some dir/t.json");
  EXPECT_TRUE(settings.timeline_mark_cycles);
  EXPECT_EQ(settings.timeline_max_bytes, 8192);
  EXPECT_EQ(settings.log_level, LogLevel::kDebug);
  EXPECT_TRUE(settings.log_hide_time);
  EXPECT_EQ(settings.shm_buffer_bytes, 65536);
  EXPECT_EQ(settings.spin_count, 10);
  EXPECT_EQ(settings.yield_count, 0);
  EXPECT_THAT(settings.warnings, IsEmpty());
}

TEST(Settings, FlagsAreOnAboveZeroAsInTheOriginal) {
  for (const char* on : {"1", "2", " 1", "+1", "01"}) {
    EXPECT_TRUE(read_valid({{"HOROVOD_STALL_CHECK_DISABLE", on}}).stall_check_disable) << on;
  }
  for (const char* off : {"0", "-1"}) {
    EXPECT_FALSE(read_valid({{"HOROVOD_STALL_CHECK_DISABLE", off}}).stall_check_disable) << off;
  }
}

TEST(Settings, SwitchesAreOnWhenNotZeroAsInTheOriginal) {
  for (const char* on : {"1", "2", "-1"}) {
    EXPECT_TRUE(read_valid({{"HOROVOD_DYNAMIC_PROCESS_SETS", on}}).dynamic_process_sets) << on;
  }
  EXPECT_FALSE(read_valid({{"HOROVOD_DYNAMIC_PROCESS_SETS", "0"}}).dynamic_process_sets);
}

TEST(Settings, LogLevelsMayBeInAnyCase) {
  const std::pair<const char*, LogLevel> rows[] = {
      {"trace", LogLevel::kTrace},     {"Debug", LogLevel::kDebug}, {"INFO", LogLevel::kInfo},
      {"warning", LogLevel::kWarning}, {"Error", LogLevel::kError}, {"fatal", LogLevel::kFatal}};
  for (const auto& [text, level] : rows) {
    EXPECT_EQ(read_valid({{"HOROVOD_LOG_LEVEL", text}}).log_level, level) << text;
  }
}

TEST(Settings, LogLevelsThatTheOriginalDidNotKnowAndScriptsSetMeanTheDefaultAsThere) {
  for (const char* text : {"WARN", "off"}) {
    EXPECT_EQ(read_valid({{"HOROVOD_LOG_LEVEL", text}}).log_level, LogLevel::kWarning) << text;
  }
}

TEST(Settings, ProgressPoliciesHaveTheirPublicCodes) {
  const std::pair<const char*, hvd_progress> rows[] = {{"auto", HVD_PROGRESS_AUTO},
                                                       {"waiter", HVD_PROGRESS_WAITER},
                                                       {"background", HVD_PROGRESS_BACKGROUND}};
  for (const auto& [text, code] : rows) {
    const Settings settings = read_valid({{"HOROVOD_PROGRESS", text}});
    EXPECT_EQ(static_cast<int>(settings.progress), static_cast<int>(code)) << text;
  }
}

TEST(Settings, AcceptTheEnginesOfTheOriginal) {
  for (const char* name : {"mpi", "gloo", "MPI", "native"}) {
    EXPECT_EQ(read_valid({{"HOROVOD_CONTROLLER", name}}), Settings{}) << name;
  }
  for (const char* name : {"mpi", "gloo", "ccl", "native"}) {
    EXPECT_EQ(read_valid({{"HOROVOD_CPU_OPERATIONS", name}}), Settings{}) << name;
  }
}

TEST(Settings, RefuseBadValuesByName) {
  const std::pair<Variables, const char*> rows[] = {
      {{{"HOROVOD_AUTOTUNE", "true"}}, "HOROVOD_AUTOTUNE: expected an integer, got 'true'"},
      {{{"HOROVOD_LOG_LEVEL", "wanring"}},
       "HOROVOD_LOG_LEVEL: expected trace, debug, info, warning, error or fatal, got 'wanring': "
       "did "
       "you mean 'warning'?"},
      {{{"HOROVOD_LOG_LEVEL", "loud"}},
       "HOROVOD_LOG_LEVEL: expected trace, debug, info, warning, error or fatal, got 'loud'"},
      {{{"HOROVOD_FUSION_THRESHOLD", "-1"}},
       "HOROVOD_FUSION_THRESHOLD: expected an integer of 0 or more, got '-1'"},
      {{{"HOROVOD_FUSION_THRESHOLD", "64MB"}},
       "HOROVOD_FUSION_THRESHOLD: expected an integer, got '64MB'"},
      {{{"HOROVOD_CYCLE_TIME", "-0.5"}},
       "HOROVOD_CYCLE_TIME: expected a number of 0 or more, got '-0.5'"},
      {{{"HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", "2"}},
       "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE: expected a number from 0 to 1, got '2'"},
      {{{"HOROVOD_CYCLE_TIME", "(None,)"}}, "HOROVOD_CYCLE_TIME: expected a number, got '(None,)'"},
      {{{"HOROVOD_CACHE_CAPACITY", "-1"}},
       "HOROVOD_CACHE_CAPACITY: expected an integer from 0 to 4294967295, got '-1'"},
      {{{"HOROVOD_CONTROLLER", "nccl"}},
       "HOROVOD_CONTROLLER: expected auto, native, mpi or gloo, got 'nccl'"},
      {{{"HOROVOD_CPU_OPERATIONS", "mlsl"}},
       "HOROVOD_CPU_OPERATIONS: expected auto, native, mpi, gloo or ccl, got 'mlsl'"},
      {{{"HOROVOD_PROGRESS", "default"}},
       "HOROVOD_PROGRESS: expected auto, waiter or background, got 'default'"},
      {{{"HOROVOD_THREAD_AFFINITY", "0,a"}},
       "HOROVOD_THREAD_AFFINITY: expected integers of 0 or more separated by commas, got '0,a'"},
      {{{"HOROVOD_NUM_NCCL_STREAMS", "0"}},
       "HOROVOD_NUM_NCCL_STREAMS: expected an integer from 1 to 64, got '0'"},
      {{{"HOROVOD_SPIN_COUNT", "-2"}},
       "HOROVOD_SPIN_COUNT: expected an integer from -1 to 1000000000, got '-2'"},
  };
  for (const auto& [variables, message] : rows) EXPECT_EQ(error_of(variables), message);
}

TEST(Settings, RefuseGarbageInEveryVariableButTexts) {
  for (const SettingInfo& info : describe_settings()) {
    if (info.type == "text") continue;
    EXPECT_THAT(error_of({{info.name, "garbage"}}),
                ::testing::StartsWith(info.name + ": expected "));
  }
}

TEST(Settings, AStallLimitBelowTheCheckTimeWarnsAndNeverActs) {
  const Settings settings = read_valid({{"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "30"}});

  EXPECT_EQ(settings.stall_shutdown_time, seconds(0));
  EXPECT_THAT(
      settings.warnings,
      ElementsAre("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS (30) is less than "
                  "HOROVOD_STALL_CHECK_TIME_SECONDS (60), so stalled operations will not end "
                  "the job"));
}

TEST(Settings, AStallLimitEqualToTheCheckTimeActs) {
  const Settings settings = read_valid({{"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "60"}});

  EXPECT_EQ(settings.stall_shutdown_time, seconds(60));
  EXPECT_THAT(settings.warnings, IsEmpty());
}

TEST(Settings, TableHasNoNameTwiceAndExplainsEachRow) {
  std::set<std::string> names;
  for (const SettingInfo& info : describe_settings()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_THAT(info.meaning, ::testing::EndsWith(".")) << info.name;
    EXPECT_FALSE(info.type.empty()) << info.name;
    EXPECT_FALSE(info.group.empty()) << info.name;
  }
}

TEST(Settings, ProcessEnvironmentReadsTheProcess) {
  ASSERT_EQ(::setenv("HVD_TEST_VARIABLE", "value", 1), 0);
  EXPECT_EQ(process_environment()("HVD_TEST_VARIABLE"), "value");

  ASSERT_EQ(::unsetenv("HVD_TEST_VARIABLE"), 0);
  EXPECT_EQ(process_environment()("HVD_TEST_VARIABLE"), std::nullopt);
}

}  // namespace
}  // namespace hvd
