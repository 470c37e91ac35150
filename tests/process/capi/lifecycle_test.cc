// Life cycle over the C ABI: before init, after shutdown, again and again with other sizes, and
// ends at different moments on different ranks.
#include <dirent.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/c_api.h"
#include "tests/support/eventually.h"
#include "tests/support/process_ranks.h"
#include "tests/support/reference.h"

namespace hvd::testing {
namespace {

using std::chrono::seconds;

ProcessOptions init_by_function() {
  ProcessOptions options;
  options.init = ProcessOptions::Init::kByFunction;
  return options;
}

void expect_sum(int size, const std::string& name, size_t count = 100) {
  std::vector<float> values(count, 1.0f);
  ASSERT_EQ(float_allreduce(name, values).run(), HVD_OK) << hvd_last_error();
  ASSERT_EQ(values, std::vector<float>(count, static_cast<float>(size)));
}

// Whatever needs a job says so; nothing crashes.
void expect_no_job() {
  std::vector<float> values(4, 1.0f);
  const Call call = float_allreduce("x", values);
  const hvd_request request = call.request();
  hvd_handle handle = 0;
  hvd_prepared* prepared = nullptr;
  void* buffer = nullptr;
  int32_t last = 0;
  const int32_t ranks[] = {0};
  EXPECT_EQ(hvd_is_initialized(), 0);
  EXPECT_EQ(hvd_rank(), -1);
  EXPECT_EQ(hvd_size(), -1);
  EXPECT_EQ(hvd_local_rank(), -1);
  EXPECT_EQ(hvd_local_size(), -1);
  EXPECT_EQ(hvd_cross_rank(), -1);
  EXPECT_EQ(hvd_cross_size(), -1);
  EXPECT_EQ(hvd_submit(&request, &handle), HVD_PRECONDITION_ERROR);
  EXPECT_STRNE(hvd_last_error(), "");
  EXPECT_EQ(hvd_run(&request, HVD_FOREVER), HVD_PRECONDITION_ERROR);
  EXPECT_EQ(hvd_run_group(&request, 1, HVD_FOREVER), HVD_PRECONDITION_ERROR);
  EXPECT_EQ(hvd_prepare(&request, 1, &prepared), HVD_PRECONDITION_ERROR);
  EXPECT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_PRECONDITION_ERROR);
  EXPECT_EQ(hvd_join(&last, HVD_FOREVER), HVD_PRECONDITION_ERROR);
  EXPECT_EQ(hvd_buffer_alloc(100, &buffer), HVD_PRECONDITION_ERROR);
  EXPECT_EQ(hvd_buffer_contains(values.data(), 4), 0);
  EXPECT_NE(hvd_wait(1, 0), HVD_OK);
  EXPECT_NE(hvd_poll(1), HVD_OK);
  EXPECT_EQ(hvd_process_set_add(ranks, 1), HVD_PROCESS_SET_ERROR_INIT);
  EXPECT_EQ(hvd_process_set_rank(0), HVD_PROCESS_SET_ERROR_INIT);
  EXPECT_EQ(hvd_process_set_size(0), HVD_PROCESS_SET_ERROR_INIT);
  EXPECT_EQ(hvd_recent_operations(nullptr, 0), 0u);
}

TEST(CapiLifecycle, CallsBeforeInitAndAfterShutdownAreRefused) {
  run_processes(
      1,
      [](RankProcess& rank) {
        expect_no_job();
        EXPECT_EQ(hvd_shutdown(), HVD_OK) << "nothing to shut down";
        ASSERT_EQ(rank.init(), HVD_OK) << hvd_last_error();
        EXPECT_EQ(hvd_shutdown(), HVD_OK);
        EXPECT_EQ(hvd_shutdown(), HVD_OK) << "idempotent";
        expect_no_job();
      },
      init_by_function());
}

TEST(CapiLifecycle, InformationNeedsNoInit) {
  run_processes(
      1,
      [](RankProcess&) {
        hvd_capabilities capabilities = {};
        capabilities.struct_size = sizeof(capabilities);
        EXPECT_EQ(hvd_get_capabilities(&capabilities), HVD_OK);
        EXPECT_EQ(capabilities.abi_version, HVD_ABI_VERSION);
        EXPECT_EQ(capabilities.dtypes, (1u << 11) - 1);
        EXPECT_EQ(capabilities.reduce_ops, (1u << 6) - 1);
        EXPECT_GE(capabilities.max_ranks_per_host, 8);
        EXPECT_STRNE(capabilities.simd, "");
        EXPECT_EQ(hvd_abi_version(), HVD_ABI_VERSION);
        EXPECT_STRNE(hvd_version(), "");
        EXPECT_STRNE(hvd_status_name(HVD_PEER_LOST), "");
        EXPECT_NE(hvd_status_name(static_cast<hvd_status>(99)), nullptr);
      },
      init_by_function());
}

TEST(CapiLifecycle, ASecondInitChangesNothing) {
  run_processes(2, [](RankProcess& rank) {
    EXPECT_EQ(rank.init(), HVD_OK) << hvd_last_error();
    EXPECT_EQ(hvd_init(nullptr), HVD_OK) << hvd_last_error();
    EXPECT_EQ(hvd_rank(), rank.rank());
    EXPECT_EQ(hvd_size(), rank.size());
    EXPECT_EQ(hvd_local_rank(), rank.rank());
    EXPECT_EQ(hvd_cross_size(), 1);
    EXPECT_EQ(hvd_is_homogeneous(), 1);
    expect_sum(rank.size(), "x");
  });
}

TEST(CapiLifecycle, ATopologyThatMakesNoSenseIsRefused) {
  run_processes(
      1,
      [](RankProcess& rank) {
        const hvd_topology bad[] = {{2, 2, 0, 1, 0, 1},
                                    {-1, 2, 0, 2, 0, 1},
                                    {0, 0, 0, 0, 0, 1},
                                    {0, -5, 0, 1, 0, 1},
                                    {0, 2, 3, 2, 0, 1}};
        for (const hvd_topology& topology : bad) {
          hvd_init_options options;
          hvd_init_options_init(&options);
          options.topology = topology;
          options.job_id = rank.job_id().c_str();
          EXPECT_EQ(hvd_init(&options), HVD_INVALID_ARGUMENT)
              << topology.rank << " of " << topology.size;
          EXPECT_EQ(hvd_is_initialized(), 0);
        }
      },
      init_by_function());
}

TEST(CapiLifecycle, AnExchangeHasBothFunctions) {
  run_processes(
      1,
      [](RankProcess&) {
        hvd_init_options options;
        hvd_init_options_init(&options);
        options.topology = {0, 1, 0, 1, 0, 1};
        options.exchange.set = [](void*, const char*, const void*, size_t) { return 0; };

        EXPECT_EQ(hvd_init(&options), HVD_INVALID_ARGUMENT);
        EXPECT_STREQ(hvd_last_error(), "init: exchange has no function 'get'");
        // A caller that was built before there was one.
        options.struct_size = offsetof(hvd_init_options, exchange);
        EXPECT_EQ(hvd_init(&options), HVD_OK) << hvd_last_error();
      },
      init_by_function());
}

size_t entries_of(const char* folder) {
  size_t count = 0;
  DIR* dir = ::opendir(folder);
  while (::readdir(dir) != nullptr) ++count;
  ::closedir(dir);
  return count;
}

struct Footprint {
  size_t descriptors = entries_of("/proc/self/fd");
  size_t threads = entries_of("/proc/self/task");
  size_t mappings = 0, shared_mappings = 0;

  Footprint() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line); ++mappings) {
      const size_t space = line.find(' ');
      if (line[space + 4] == 's') ++shared_mappings;
    }
  }
};

// Requests that are too long for the eager ring travel through the arena.
void expect_long_messages(int size) {
  constexpr int kTensors = 300;
  std::vector<std::vector<float>> values(kTensors, std::vector<float>(1, 1.0f));
  std::vector<Call> calls;
  for (int i = 0; i < kTensors; ++i)
    calls.push_back(float_allreduce(std::string(4000, 'x') + std::to_string(i), values[i]));
  std::vector<hvd_request> requests;
  for (const Call& call : calls) requests.push_back(call.request());
  EXPECT_EQ(hvd_run_group(requests.data(), requests.size(), HVD_FOREVER), HVD_OK)
      << hvd_last_error();
  EXPECT_EQ(values[kTensors - 1][0], static_cast<float>(size));
}

// One job of `size` ranks with a bit of everything; ranks beyond it sit it out.
void run_small_job(RankProcess& rank, int round) {
  const int size = 1 + round % rank.size();
  if (rank.rank() < size) {
    ASSERT_EQ(rank.init_as(rank.rank(), size, static_cast<uint64_t>(round + 1)), HVD_OK)
        << hvd_last_error();
    EXPECT_EQ(hvd_size(), size);
    expect_sum(size, "small");
    expect_sum(size, "large", 50000);
    void* buffer = nullptr;
    ASSERT_EQ(hvd_buffer_alloc(1000, &buffer), HVD_OK) << hvd_last_error();
    EXPECT_EQ(hvd_buffer_contains(buffer, 1000), 1);
    EXPECT_EQ(hvd_buffer_free(buffer), HVD_OK) << "the segment stays mapped for whoever keeps one";
    expect_long_messages(size);
    EXPECT_EQ(hvd_shutdown(), HVD_OK) << hvd_last_error();
    EXPECT_EQ(hvd_is_initialized(), 0);
  }
  // Meet outside of the library, so that the next round starts together.
  rank.board().add(0, 1);
  ASSERT_TRUE(rank.board().wait_at_least(0, int64_t{rank.size()} * (round + 1), seconds(60)));
}

TEST(CapiLifecycle, TwentyJobsOfChangingSizeLeaveNothingBehind) {
  ProcessOptions options = init_by_function();
  options.deadline = seconds(60);
  run_processes(
      4,
      [](RankProcess& rank) {
        for (int round = 0; round < 4; ++round) run_small_job(rank, round);  // first-use costs
        const Footprint before;
        for (int round = 4; round < 24; ++round) {
          rank.phase("job " + std::to_string(round));
          run_small_job(rank, round);
        }
        const Footprint after;

        EXPECT_EQ(after.descriptors, before.descriptors);
        EXPECT_EQ(after.shared_mappings, before.shared_mappings);
        if (kTimeFactor == 1) {  // sanitizers keep threads and memory of their own
          EXPECT_TRUE(
              testing::eventually([&] { return entries_of("/proc/self/task") <= before.threads; }));
          EXPECT_LT(after.mappings, before.mappings + 10) << "less than one per job";
        }
      },
      options);
}

TEST(CapiLifecycle, ARankThatEndsFirstDoesNotFailTheLastCollectiveOfTheOthers) {
  run_processes(
      4,
      [](RankProcess& rank) {
        for (int round = 0; round < 40; ++round) {
          rank.phase("round " + std::to_string(round));
          ASSERT_EQ(rank.init_as(rank.rank(), rank.size(), static_cast<uint64_t>(round + 1)),
                    HVD_OK)
              << hvd_last_error();
          expect_sum(rank.size(), "first");
          expect_sum(rank.size(), "last", round % 2 == 0 ? 10 : 30000);
          ASSERT_EQ(hvd_shutdown(), HVD_OK) << hvd_last_error();
        }
      },
      init_by_function());
}

TEST(CapiLifecycle, AgreedOperationsFinishWhenARankShutsDown) {
  run_processes(2, [](RankProcess& rank) {
    std::vector<std::vector<float>> tensors(30, std::vector<float>(4000, 1.0f));
    std::vector<hvd_handle> handles;
    for (size_t i = 0; i < tensors.size(); ++i) {
      handles.push_back(float_allreduce("t" + std::to_string(i), tensors[i]).submitted());
    }
    rank.board().add(0, 1);
    ASSERT_TRUE(rank.board().wait_at_least(0, 2, seconds(20)));
    if (rank.rank() == 0) {
      ASSERT_EQ(hvd_shutdown(), HVD_OK) << hvd_last_error();
    } else {
      EXPECT_EQ(hvd_wait_many(handles.data(), handles.size(), HVD_FOREVER), HVD_OK)
          << hvd_last_error();
    }
    for (const auto& tensor : tensors) EXPECT_EQ(tensor, std::vector<float>(4000, 2.0f));
  });
}

TEST(CapiLifecycle, WhatCannotFinishAfterAShutdownEndsAsShutDown) {
  run_processes(3, [](RankProcess& rank) {
    expect_sum(rank.size(), "together");
    if (rank.rank() == 1) {
      ASSERT_TRUE(rank.board().wait_at_least(0, 2, seconds(20)));
      ASSERT_EQ(hvd_shutdown(), HVD_OK) << hvd_last_error();
      return;
    }
    std::vector<float> values(10, 1.0f);
    const hvd_handle handle = float_allreduce("never", values).submitted();
    rank.board().add(0, 1);

    EXPECT_EQ(hvd_wait(handle, HVD_FOREVER), HVD_SHUT_DOWN);
    EXPECT_NE(std::string(hvd_last_error()).find("shut down"), std::string::npos);
    EXPECT_NE(std::string(hvd_last_error()).find("rank 1 (host"), std::string::npos)
        << hvd_last_error();
    EXPECT_EQ(hvd_release(handle), HVD_OK);
    EXPECT_EQ(hvd_is_initialized(), 1) << "until this rank shuts down itself";
    EXPECT_EQ(float_allreduce("later", values).run(), HVD_SHUT_DOWN);
    EXPECT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_SHUT_DOWN);
  });
}

TEST(CapiLifecycle, HandlesOfAnEarlierJobAreUnknown) {
  run_processes(
      1,
      [](RankProcess& rank) {
        ASSERT_EQ(rank.init(), HVD_OK) << hvd_last_error();
        std::vector<float> values(4, 1.0f);
        const hvd_handle old = float_allreduce("x", values).submitted();
        ASSERT_EQ(hvd_wait(old, HVD_FOREVER), HVD_OK);
        ASSERT_EQ(hvd_shutdown(), HVD_OK);
        ASSERT_EQ(rank.init(), HVD_OK) << hvd_last_error();
        const hvd_handle fresh = float_allreduce("x", values).submitted();

        EXPECT_NE(old, fresh);
        EXPECT_EQ(hvd_wait(old, HVD_FOREVER), HVD_INVALID_ARGUMENT);
        finish(fresh);
        ASSERT_EQ(hvd_shutdown(), HVD_OK);
      },
      init_by_function());
}

TEST(CapiLifecycle, APreparedOperationOfAnEarlierJobIsRefused) {
  run_processes(
      1,
      [](RankProcess& rank) {
        ASSERT_EQ(rank.init(), HVD_OK) << hvd_last_error();
        std::vector<float> values(4, 1.0f);
        const Call call = float_allreduce("x", values);
        const hvd_request request = call.request();
        hvd_prepared* prepared = nullptr;
        ASSERT_EQ(hvd_prepare(&request, 1, &prepared), HVD_OK);
        for (int step = 0; step < 3; ++step) {
          ASSERT_EQ(hvd_prepared_run(prepared, HVD_FOREVER), HVD_OK) << hvd_last_error();
        }
        ASSERT_EQ(hvd_shutdown(), HVD_OK);
        EXPECT_NE(hvd_prepared_run(prepared, HVD_FOREVER), HVD_OK);
        ASSERT_EQ(rank.init(), HVD_OK) << hvd_last_error();
        EXPECT_NE(hvd_prepared_run(prepared, HVD_FOREVER), HVD_OK);
        hvd_prepared_free(prepared);
        ASSERT_EQ(hvd_shutdown(), HVD_OK);
      },
      init_by_function());
}

}  // namespace
}  // namespace hvd::testing
