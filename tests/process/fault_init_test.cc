// Ranks that never come or disagree: init ends with an error on all ranks, in time, and leaves
// nothing behind.
#include <dirent.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/c_api.h"
#include "tests/support/process_ranks.h"
#include "tests/support/reference.h"

namespace hvd::testing {
namespace {

using std::chrono::seconds;

ProcessOptions impatient() {
  ProcessOptions options;
  options.init = ProcessOptions::Init::kByFunction;
  options.environment = {{"HOROVOD_GLOO_TIMEOUT_SECONDS", "1"}};
  return options;
}

bool error_names_rank(int rank) {
  return std::string(hvd_last_error()).find(std::to_string(rank)) != std::string::npos;
}

class FaultInit : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Missing, FaultInit, ::testing::Values(0, 1, 2));

TEST_P(FaultInit, NamesTheRankThatNeverCame) {
  run_processes(
      3,
      [](RankProcess& rank) {
        const int missing = GetParam();
        if (rank.rank() == missing) return;
        const int64_t begin = monotonic_ns();

        EXPECT_EQ(rank.init(), HVD_TIMED_OUT);

        EXPECT_LT(monotonic_ns() - begin, kSecond * 2 + kSecond * kTimeFactor / 2);
        EXPECT_TRUE(error_names_rank(missing)) << hvd_last_error();
        EXPECT_EQ(hvd_is_initialized(), 0);
      },
      impatient());
}

TEST_P(FaultInit, CanBeTriedAgainAfterAFailure) {
  run_processes(
      3,
      [](RankProcess& rank) {
        const int missing = GetParam();
        if (rank.rank() != missing) {
          EXPECT_NE(rank.init_as(rank.rank(), rank.size(), 1), HVD_OK);
        }
        rank.board().add(0, 1);
        ASSERT_TRUE(rank.board().wait_at_least(0, 3, seconds(60)));

        ASSERT_EQ(rank.init_as(rank.rank(), rank.size(), 2), HVD_OK) << hvd_last_error();

        std::vector<float> values(10, 1.0f);
        EXPECT_EQ(float_allreduce("x", values).run(), HVD_OK) << hvd_last_error();
        EXPECT_EQ(values[0], 3.0f);
        EXPECT_EQ(hvd_shutdown(), HVD_OK);
      },
      impatient());
}

TEST_P(FaultInit, ARankThatDiesWhileTheOthersWaitDoesNotHoldThemForever) {
  ProcessOptions options = impatient();
  options.expected_signals = {{GetParam(), SIGKILL}};
  run_processes(
      3,
      [](RankProcess& rank) {
        const int victim = GetParam();
        if (rank.rank() == victim) {
          // Die inside of init: the alarm comes while this rank waits for one that comes late.
          rank.board().set(0, 1);
          struct sigaction action = {};
          action.sa_handler = [](int) { ::kill(::getpid(), SIGKILL); };
          ::sigaction(SIGALRM, &action, nullptr);
          ::ualarm(200000, 0);
          static_cast<void>(rank.init());
          ::pause();
        }
        if (rank.rank() == (victim + 1) % 3) return;  // the late one never comes

        EXPECT_NE(rank.init(), HVD_OK);
        EXPECT_EQ(hvd_is_initialized(), 0);
      },
      options);
}

TEST(FaultInitDisagreement, AboutTheSizeOfTheJobFailsOnAllRanks) {
  run_processes(
      2,
      [](RankProcess& rank) {
        EXPECT_NE(rank.init_as(rank.rank(), rank.rank() == 0 ? 2 : 3, 1), HVD_OK);
        EXPECT_STRNE(hvd_last_error(), "");
        EXPECT_EQ(hvd_is_initialized(), 0);
      },
      impatient());
}

TEST(FaultInitDisagreement, AboutStaticProcessSetsFailsOnAllRanks) {
  run_processes(
      3,
      [](RankProcess& rank) {
        const int32_t ranks[] = {0, rank.rank() == 2 ? 1 : 2};
        const int32_t size = 2;
        hvd_init_options options;
        hvd_init_options_init(&options);
        options.topology = {rank.rank(), rank.size(), rank.rank(), rank.size(), 0, 1};
        options.job_id = rank.job_id().c_str();
        options.process_set_ranks = ranks;
        options.process_set_sizes = &size;
        options.process_set_count = 1;

        EXPECT_NE(hvd_init(&options), HVD_OK);

        EXPECT_NE(std::string(hvd_last_error()).find("process set"), std::string::npos)
            << hvd_last_error();
        EXPECT_EQ(hvd_is_initialized(), 0);
      },
      impatient());
}

TEST(FaultInitDisagreement, TwoRanksWithTheSameNumberAreRefused) {
  run_processes(
      2,
      [](RankProcess& rank) {
        static_cast<void>(rank);
        EXPECT_NE(rank.init_as(1, 2, 1), HVD_OK);
        EXPECT_EQ(hvd_is_initialized(), 0);
      },
      impatient());
}

TEST(FaultInitSettings, ABadValueIsAnErrorThatNamesTheVariable) {
  ProcessOptions options = impatient();
  options.environment = {{"HOROVOD_FUSION_THRESHOLD", "plenty"}};
  run_processes(
      1,
      [](RankProcess& rank) {
        EXPECT_EQ(rank.init(), HVD_INVALID_ARGUMENT);
        EXPECT_NE(std::string(hvd_last_error()).find("HOROVOD_FUSION_THRESHOLD"), std::string::npos)
            << hvd_last_error();
      },
      options);
}

std::vector<std::string> files_with(const char* folder, const std::string& part) {
  std::vector<std::string> found;
  DIR* dir = ::opendir(folder);
  if (dir == nullptr) return found;
  while (const dirent* entry = ::readdir(dir)) {
    if (std::string(entry->d_name).find(part) != std::string::npos) found.push_back(entry->d_name);
  }
  ::closedir(dir);
  return found;
}

size_t count_shared_mappings() {
  size_t count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line[line.find(' ') + 4] == 's') ++count;
  }
  return count;
}

size_t count_descriptors() { return files_with("/proc/self/fd", "").size(); }

TEST(FaultLeftovers, ADeadJobLeavesNoNamesAndSurvivorsKeepNoMemory) {
  ProcessOptions options;
  options.init = ProcessOptions::Init::kByFunction;
  options.expected_signals = {{0, SIGKILL}};
  options.supervise = [](Supervisor& supervisor) {
    EXPECT_TRUE(supervisor.board().wait_at_least(0, 3, seconds(20)));
    supervisor.kill(0);
  };
  run_processes(
      3,
      [](RankProcess& rank) {
        const size_t descriptors = count_descriptors();
        const size_t mappings = count_shared_mappings();
        ASSERT_EQ(rank.init(), HVD_OK) << hvd_last_error();
        std::vector<float> values(100000, 1.0f);
        void* buffer = nullptr;
        ASSERT_EQ(hvd_buffer_alloc(1 << 20, &buffer), HVD_OK) << hvd_last_error();
        rank.board().add(0, 1);
        hvd_status status = HVD_OK;
        while (status == HVD_OK) status = float_allreduce("x", values).run();
        EXPECT_EQ(status, HVD_PEER_LOST);
        EXPECT_EQ(hvd_buffer_free(buffer), HVD_OK) << hvd_last_error();
        EXPECT_EQ(hvd_shutdown(), HVD_OK) << hvd_last_error();

        EXPECT_EQ(count_descriptors(), descriptors);
        EXPECT_EQ(count_shared_mappings(), mappings);
      },
      options);

  const std::string job = "test-" + std::to_string(::getpid()) + "-";
  EXPECT_TRUE(files_with("/dev/shm", job).empty());
  EXPECT_TRUE(files_with("/tmp", job).empty());
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    EXPECT_EQ(line.find(job), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace hvd::testing
