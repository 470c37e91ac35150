// The forms of a submission over the C ABI: asynchronous handles, groups, prepared operations,
// callbacks, allocators. What poll, wait, release and take promise in hvd.h.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/support/c_api.h"
#include "tests/support/process_ranks.h"
#include "tests/support/reference.h"

namespace hvd::testing {
namespace {

using std::chrono::seconds;

// A request that repeats is recognised by the address of its name: everything else about it must
// count all the same.
TEST(CapiRuns, MemoryOfANameThatIsUsedAgainForAnotherRequestIsNoticed) {
  run_processes(2, [](RankProcess& rank) {
    char name[16] = "first";
    int64_t shape[2] = {2, 3};
    std::vector<float> values(6), other(6);
    hvd_request request;
    hvd_request_init(&request);
    request.name = name;
    request.shape = shape;
    request.ndim = 2;
    const auto run = [&](std::vector<float>& buffer) {
      buffer.assign(6, static_cast<float>(rank.rank() + 1));
      request.input = request.output = buffer.data();
      return hvd_run(&request, 20000 * kMillisecond);
    };
    for (int round = 0; round < 4; ++round) {
      ASSERT_EQ(run(values), HVD_OK) << hvd_last_error();
      EXPECT_EQ(values, std::vector<float>(6, 3.0f));
    }

    ASSERT_EQ(run(other), HVD_OK) << hvd_last_error();  // another buffer
    EXPECT_EQ(other, std::vector<float>(6, 3.0f));
    request.reduce_op = HVD_OP_MAX;
    ASSERT_EQ(run(values), HVD_OK) << hvd_last_error();
    EXPECT_EQ(values, std::vector<float>(6, 2.0f));
    shape[1] = 2;
    ASSERT_EQ(run(values), HVD_OK) << hvd_last_error();
    EXPECT_EQ(values[3], 2.0f);
    EXPECT_EQ(values[4], static_cast<float>(rank.rank() + 1)) << "past the end of the tensor";
    std::strcpy(name, "second");
    request.postscale = 0.5;
    ASSERT_EQ(run(values), HVD_OK) << hvd_last_error();
    EXPECT_EQ(values[3], 1.0f);
    std::string recent(4096, '\0');
    hvd_recent_operations(recent.data(), recent.size());
    EXPECT_NE(recent.find("'second'"), std::string::npos) << recent.c_str();
    request.input = nullptr;
    EXPECT_EQ(hvd_run(&request, 20000 * kMillisecond), HVD_INVALID_ARGUMENT);
    EXPECT_EQ(hvd_barrier(0, 20000 * kMillisecond), HVD_OK) << hvd_last_error();
  });
}

// Requests as a program has them that was compiled when hvd_request ended before `stream`: one
// behind the other, and nothing of ours behind the last one.
class OldRequests {
 public:
  static constexpr size_t kBytes = offsetof(hvd_request, stream);

  void add(const Call& call) {
    hvd_request request = call.request();
    request.struct_size = kBytes;
    const auto* bytes = reinterpret_cast<const std::byte*>(&request);
    bytes_.insert(bytes_.end(), bytes, bytes + kBytes);
    bytes_.shrink_to_fit();
  }
  const hvd_request* data() const { return reinterpret_cast<const hvd_request*>(bytes_.data()); }

 private:
  std::vector<std::byte> bytes_;
};

TEST(CapiRuns, RequestsOfOldCallersEndBeforeTheStream) {
  run_processes(2, [](RankProcess&) {
    std::vector<float> alone(6, 1.0f), first(10, 1.0f), second(700, 2.0f), third(3, 3.0f);
    const Call call = float_allreduce("old", alone);
    const Call calls[] = {float_allreduce("a", first), float_allreduce("b", second),
                          float_allreduce("c", third)};
    OldRequests single, group;
    single.add(call);
    for (const Call& one : calls) group.add(one);

    for (int round = 1; round <= 3; ++round) {
      const float times = static_cast<float>(1 << round);
      ASSERT_EQ(hvd_run(single.data(), 20000 * kMillisecond), HVD_OK) << hvd_last_error();
      EXPECT_EQ(alone, std::vector<float>(6, times));
      ASSERT_EQ(hvd_run_group(group.data(), 3, 20000 * kMillisecond), HVD_OK) << hvd_last_error();
      EXPECT_EQ(first, std::vector<float>(10, times));
      EXPECT_EQ(second, std::vector<float>(700, 2 * times));
      EXPECT_EQ(third, std::vector<float>(3, 3 * times));
    }
    hvd_handle handle = 0;
    ASSERT_EQ(hvd_submit_group(group.data(), 3, &handle), HVD_OK) << hvd_last_error();
    ASSERT_EQ(hvd_wait(handle, 20000 * kMillisecond), HVD_OK) << hvd_last_error();
    EXPECT_EQ(hvd_release(handle), HVD_OK);
    EXPECT_EQ(second, std::vector<float>(700, 32.0f));
    hvd_prepared* prepared = nullptr;
    ASSERT_EQ(hvd_prepare(group.data(), 3, &prepared), HVD_OK) << hvd_last_error();
    ASSERT_EQ(hvd_prepared_run(prepared, 20000 * kMillisecond), HVD_OK) << hvd_last_error();
    hvd_prepared_free(prepared);
    EXPECT_EQ(third, std::vector<float>(3, 96.0f));
  });
}

TEST(CapiRuns, ARepeatedRequestGoesOnAfterAnotherInit) {
  run_processes(2, [](RankProcess& rank) {
    std::vector<float> values;
    int64_t shape = 4;
    hvd_request request;
    hvd_request_init(&request);
    request.name = "again";
    request.shape = &shape;
    request.ndim = 1;
    for (int life = 0; life < 3; ++life) {
      if (life > 0) {
        ASSERT_EQ(hvd_shutdown(), HVD_OK);
        ASSERT_EQ(rank.init(), HVD_OK) << hvd_last_error();
      }
      for (int round = 0; round < 4; ++round) {
        values.assign(4, 1.0f);
        request.input = request.output = values.data();
        ASSERT_EQ(hvd_run(&request, 20000 * kMillisecond), HVD_OK) << hvd_last_error();
        ASSERT_EQ(values, std::vector<float>(4, 2.0f));
      }
    }
  });
}

TEST(CapiHandles, TheFirstPollAlwaysFindsTheOperationInProgress) {
  for (const int np : {1, 2}) {
    run_processes(np, [](RankProcess& rank) {
      std::vector<float> values(64);
      for (int round = 0; round < 200; ++round) {
        values.assign(64, 1.0f);
        const auto call = float_allreduce("poll", values);
        const hvd_handle handle = call.submitted();

        ASSERT_EQ(hvd_poll(handle), HVD_IN_PROGRESS) << "round " << round;

        hvd_status status = HVD_IN_PROGRESS;
        while (status == HVD_IN_PROGRESS) status = hvd_poll(handle);
        ASSERT_EQ(status, HVD_OK) << hvd_last_error();
        EXPECT_EQ(hvd_poll(handle), HVD_OK) << "a finished handle stays finished";
        EXPECT_EQ(values[63], static_cast<float>(rank.size()));
        EXPECT_EQ(hvd_release(handle), HVD_OK);
      }
    });
  }
}

TEST(CapiHandles, AWaitThatTimesOutLeavesTheOperationRunning) {
  run_processes(2, [](RankProcess& rank) {
    std::vector<float> values(100, 2.0f);
    const auto call = float_allreduce("late", values);
    if (rank.rank() == 0) {
      const hvd_handle handle = call.submitted();
      EXPECT_EQ(hvd_wait(handle, 20 * kMillisecond), HVD_TIMED_OUT);
      EXPECT_EQ(hvd_wait(handle, 0), HVD_TIMED_OUT);
      rank.board().set(0, 1);
      EXPECT_EQ(hvd_wait(handle, HVD_FOREVER), HVD_OK) << hvd_last_error();
      EXPECT_EQ(hvd_release(handle), HVD_OK);
    } else {
      ASSERT_TRUE(rank.board().wait_at_least(0, 1, seconds(20)));
      ASSERT_EQ(call.run(), HVD_OK) << hvd_last_error();
    }
    EXPECT_EQ(values, std::vector<float>(100, 4.0f));
  });
}

TEST(CapiHandles, ARunThatTimesOutStillDeliversIntoItsBuffer) {
  run_processes(2, [](RankProcess& rank) {
    std::vector<float> values(100, 2.0f);
    const auto call = float_allreduce("late", values);
    if (rank.rank() == 0) {
      EXPECT_EQ(call.run(20 * kMillisecond), HVD_TIMED_OUT);
      rank.board().set(0, 1);
    } else {
      ASSERT_TRUE(rank.board().wait_at_least(0, 1, seconds(20)));
      ASSERT_EQ(call.run(), HVD_OK) << hvd_last_error();
    }
    // Names are free again after completion: this one can only run once the first is complete.
    std::vector<float> again(100, 1.0f);
    hvd_status status = HVD_INVALID_ARGUMENT;
    const auto second = float_allreduce("late", again);
    while ((status = second.run()) == HVD_INVALID_ARGUMENT) {
    }
    EXPECT_EQ(status, HVD_OK) << hvd_last_error();
    EXPECT_EQ(values, std::vector<float>(100, 4.0f));
  });
}

TEST(CapiHandles, WaitManyWaitsForAllAndReportsTheFirstFailureInArrayOrder) {
  run_processes(3, [](RankProcess& rank) {
    std::vector<std::vector<float>> tensors(5, std::vector<float>(10, 1.0f));
    std::vector<Call> calls;
    std::vector<hvd_handle> handles;
    for (size_t i = 0; i < tensors.size(); ++i) {
      calls.push_back(float_allreduce("many" + std::to_string(i), tensors[i]));
      if (i == 3 && rank.rank() == 1) calls.back().scale(0.5, 1.0);  // a mismatch for everybody
    }
    for (const Call& call : calls) handles.push_back(call.submitted());

    const hvd_status status = hvd_wait_many(handles.data(), handles.size(), HVD_FOREVER);

    EXPECT_EQ(status, HVD_PRECONDITION_ERROR);
    EXPECT_NE(std::string(hvd_last_error()).find("many3"), std::string::npos) << hvd_last_error();
    for (size_t i = 0; i < handles.size(); ++i) {
      EXPECT_EQ(hvd_poll(handles[i]), i == 3 ? HVD_PRECONDITION_ERROR : HVD_OK) << i;
      EXPECT_EQ(hvd_release(handles[i]), HVD_OK);
    }
    EXPECT_EQ(hvd_wait_many(nullptr, 0, HVD_FOREVER), HVD_OK);
  });
}

struct Completion {
  std::atomic<int> count{0};
  hvd_handle handle = 0;
  hvd_status status = HVD_IN_PROGRESS;
  std::string message;
};
void note_completion(void* context, hvd_handle handle, hvd_status status, const char* message) {
  auto* completion = static_cast<Completion*>(context);
  completion->handle = handle;
  completion->status = status;
  completion->message = message != nullptr ? message : "";
  completion->count.fetch_add(1, std::memory_order_release);
  completion->count.notify_all();
}

TEST(CapiHandles, AReleasedOperationGoesOnAndCallsBack) {
  run_processes(2, [](RankProcess& rank) {
    std::vector<float> values(5000, 1.0f);
    Completion completion;
    const auto call =
        float_allreduce("forgotten", values).on_complete(note_completion, &completion);
    if (rank.rank() == 1) {
      ASSERT_TRUE(rank.board().wait_at_least(0, 1, seconds(20)));
    }

    const hvd_handle handle = call.submitted();
    EXPECT_EQ(hvd_release(handle), HVD_OK);
    EXPECT_EQ(hvd_wait(handle, HVD_FOREVER), HVD_INVALID_ARGUMENT) << "the handle is gone";
    rank.board().set(0, 1);

    completion.count.wait(0);  // nobody waits in the library: the background thread must do it
    EXPECT_EQ(completion.status, HVD_OK);
    EXPECT_EQ(values, std::vector<float>(5000, 2.0f));
    ASSERT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_OK);
  });
}

TEST(CapiHandles, TheCallbackComesOnceWithStatusAndText) {
  run_processes(2, [](RankProcess& rank) {
    std::vector<float> values(8, 1.0f);
    Completion good;
    Completion bad;
    const hvd_handle first =
        float_allreduce("good", values).on_complete(note_completion, &good).submitted();
    ASSERT_EQ(hvd_wait(first, HVD_FOREVER), HVD_OK) << hvd_last_error();
    std::vector<float> others(rank.rank() == 0 ? 8 : 9);
    const hvd_handle second =
        float_allreduce("bad", others).on_complete(note_completion, &bad).submitted();
    EXPECT_EQ(hvd_wait(second, HVD_FOREVER), HVD_PRECONDITION_ERROR);

    EXPECT_EQ(good.count.load(), 1);
    EXPECT_EQ(good.handle, first);
    EXPECT_EQ(good.status, HVD_OK);
    EXPECT_EQ(bad.count.load(), 1);
    EXPECT_EQ(bad.status, HVD_PRECONDITION_ERROR);
    EXPECT_NE(bad.message.find("bad"), std::string::npos) << bad.message;
    EXPECT_EQ(hvd_release(first), HVD_OK);
    EXPECT_EQ(hvd_release(second), HVD_OK);
  });
}

// Each completion submits the next link of the chain.
struct Chain {
  std::vector<float> values = std::vector<float>(16, 1.0f);
  std::vector<Call> calls;
  std::atomic<int> done{0};
};
void next_link(void* context, hvd_handle handle, hvd_status status, const char*) {
  auto* chain = static_cast<Chain*>(context);
  EXPECT_EQ(status, HVD_OK);
  const int finished = chain->done.fetch_add(1) + 1;
  if (finished < static_cast<int>(chain->calls.size())) {
    static_cast<void>(chain->calls[static_cast<size_t>(finished)].submitted());
  }
  EXPECT_NE(handle, 0u);
  chain->done.notify_all();
}

TEST(CapiHandles, ACallbackMaySubmitTheNextOperation) {
  run_processes(2, [](RankProcess& rank) {
    Chain chain;
    for (int i = 0; i < 6; ++i) {
      chain.calls.push_back(
          float_allreduce("link" + std::to_string(i), chain.values).on_complete(next_link, &chain));
    }

    static_cast<void>(chain.calls[0].submitted());
    for (int done = 0; done < 6; done = chain.done.load()) chain.done.wait(done);

    const float expected = rank.size() == 2 ? 64.0f : 1.0f;
    EXPECT_EQ(chain.values, std::vector<float>(16, expected));
  });
}

TEST(CapiHandles, AnOutputKeptByTheHandleCanBeTaken) {
  run_processes(2, [](RankProcess& rank) {
    const std::vector<int32_t> mine(static_cast<size_t>(rank.rank() + 1), rank.rank());
    const hvd_handle handle =
        Call(HVD_ALLGATHER, "take", HVD_INT32, {rank.rank() + 1}).input(mine.data()).submitted();
    ASSERT_EQ(hvd_wait(handle, HVD_FOREVER), HVD_OK) << hvd_last_error();
    void* taken = nullptr;

    ASSERT_EQ(hvd_output_take(handle, 0, &taken), HVD_OK) << hvd_last_error();
    EXPECT_EQ(hvd_release(handle), HVD_OK);

    const int32_t expected[] = {0, 1, 1};
    ASSERT_NE(taken, nullptr);
    EXPECT_EQ(std::memcmp(taken, expected, sizeof(expected)), 0);
    hvd_output_free(taken);
    hvd_output_free(nullptr);
  });
}

TEST(CapiHandles, OutputsOfUnfinishedOrUnknownOperationsAreRefused) {
  run_processes(2, [](RankProcess& rank) {
    std::vector<float> values(4, 1.0f);
    hvd_output output = {};
    output.struct_size = sizeof(output);
    void* taken = nullptr;
    if (rank.rank() == 0) {
      const hvd_handle handle = float_allreduce("x", values).submitted();
      EXPECT_NE(hvd_get_output(handle, 0, &output), HVD_OK) << "not complete yet";
      EXPECT_NE(hvd_output_take(handle, 0, &taken), HVD_OK);
      rank.board().set(0, 1);
      EXPECT_EQ(hvd_wait(handle, HVD_FOREVER), HVD_OK);
      EXPECT_EQ(hvd_get_output(handle, 1, &output), HVD_INVALID_ARGUMENT) << "one tensor only";
      EXPECT_EQ(hvd_get_output(handle, 0, nullptr), HVD_INVALID_ARGUMENT);
      EXPECT_NE(hvd_output_take(handle, 0, &taken), HVD_OK) << "the caller owns this output";
      EXPECT_EQ(hvd_release(handle), HVD_OK);
      EXPECT_EQ(hvd_release(handle), HVD_INVALID_ARGUMENT) << "released twice";
      EXPECT_EQ(hvd_get_output(handle, 0, &output), HVD_INVALID_ARGUMENT);
    } else {
      ASSERT_TRUE(rank.board().wait_at_least(0, 1, seconds(20)));
      EXPECT_EQ(float_allreduce("x", values).run(), HVD_OK) << hvd_last_error();
    }
  });
}

struct Allocation {
  std::vector<int64_t> shape;
  Bytes memory;
  bool refuse = false;
};
void* allocate_output(void* context, const int64_t* shape, int32_t ndim, size_t bytes) {
  auto* allocation = static_cast<Allocation*>(context);
  allocation->shape.assign(shape, shape + ndim);
  if (allocation->refuse) return nullptr;
  allocation->memory.resize(bytes + 1);  // never null, also for an empty output
  return allocation->memory.data();
}

TEST(CapiHandles, TheAllocatorIsAskedForOutputsOfUnknownSize) {
  run_processes(3, [](RankProcess& rank) {
    const auto inputs = make_data_of_all(rank.size(), {.count = 6});
    Allocation allocation;
    const auto call = Call(HVD_ALLGATHER, "asked", HVD_FLOAT32, {3, 2})
                          .input(inputs[static_cast<size_t>(rank.rank())].data())
                          .allocate(allocate_output, &allocation);

    ASSERT_EQ(call.run(), HVD_OK) << hvd_last_error();

    EXPECT_EQ(allocation.shape, (std::vector<int64_t>{9, 2}));
    allocation.memory.pop_back();
    EXPECT_EQ(allocation.memory, reference_allgather(inputs));
  });
}

TEST(CapiHandles, AnAllocatorThatRefusesFailsOnlyItsOwnRank) {
  run_processes(2, [](RankProcess& rank) {
    const std::vector<float> mine(6, 1.0f);
    Allocation allocation;
    allocation.refuse = rank.rank() == 1;
    const auto call = Call(HVD_ALLGATHER, "refused", HVD_FLOAT32, {6})
                          .input(mine.data())
                          .allocate(allocate_output, &allocation);

    EXPECT_EQ(call.run(), rank.rank() == 1 ? HVD_OUT_OF_MEMORY : HVD_OK) << hvd_last_error();

    std::vector<float> next(4, 1.0f);
    EXPECT_EQ(float_allreduce("next", next).run(), HVD_OK) << hvd_last_error();
    EXPECT_EQ(next[0], 2.0f);
  });
}

}  // namespace
}  // namespace hvd::testing
