// Groups and prepared operations over the C ABI with real processes.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/c_api.h"
#include "tests/support/process_ranks.h"
#include "tests/support/reference.h"

namespace hvd::testing {
namespace {

using std::chrono::seconds;

// Tensors of several dtypes and sizes with their expected sums.
struct Tensors {
  Tensors(RankProcess& rank, const std::string& prefix, uint64_t salt, Placement placement) {
    const size_t counts[] = {1, 17, 4000, 0, 60000, 333};
    const hvd_dtype dtypes[] = {HVD_FLOAT32, HVD_FLOAT16, HVD_FLOAT32,
                                HVD_INT64,   HVD_FLOAT64, HVD_BFLOAT16};
    for (size_t i = 0; i < 6; ++i) {
      const auto inputs =
          make_data_of_all(rank.size(), {.dtype = dtypes[i], .count = counts[i], .salt = salt + i});
      expected.push_back(reference_allreduce({.dtype = dtypes[i]}, inputs));
      mine.push_back(inputs[static_cast<size_t>(rank.rank())]);
      buffers.push_back(std::make_unique<TestBuffer>(placement, mine.back().size()));
      calls.push_back(Call(HVD_ALLREDUCE, prefix + std::to_string(i), dtypes[i],
                           {static_cast<int64_t>(counts[i])})
                          .in_place(buffers.back()->data()));
    }
    fill();
  }
  void fill() {
    for (size_t i = 0; i < mine.size(); ++i) buffers[i]->fill(mine[i]);
  }
  std::vector<hvd_request> requests() const {
    std::vector<hvd_request> all;
    for (const Call& call : calls) all.push_back(call.request());
    return all;
  }
  void expect_sums() {
    for (size_t i = 0; i < mine.size(); ++i) {
      EXPECT_TRUE(same_bits(static_cast<hvd_dtype>(calls[i].request().dtype), expected[i],
                            buffers[i]->bytes()))
          << "tensor " << i;
    }
  }

  std::vector<Bytes> expected, mine;
  std::vector<std::unique_ptr<TestBuffer>> buffers;
  std::vector<Call> calls;
};

class CapiGroups : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, CapiGroups, ::testing::Values(1, 2, 3, 4));

TEST_P(CapiGroups, AGroupReducesTensorsOfSeveralTypesTogether) {
  run_processes(GetParam(), [](RankProcess& rank) {
    for (const Placement placement : {Placement::kPrivate, Placement::kShared}) {
      Tensors tensors(rank, "group", 1, placement);
      const auto requests = tensors.requests();

      ASSERT_EQ(hvd_run_group(requests.data(), requests.size(), HVD_FOREVER), HVD_OK)
          << hvd_last_error();
      tensors.expect_sums();

      tensors.fill();
      hvd_handle handle = 0;
      ASSERT_EQ(hvd_submit_group(requests.data(), requests.size(), &handle), HVD_OK)
          << hvd_last_error();
      EXPECT_EQ(hvd_poll(handle), HVD_IN_PROGRESS);
      finish(handle);
      tensors.expect_sums();
    }
  });
}

TEST_P(CapiGroups, GroupsOfGathersAndScattersKeepEveryOutput) {
  run_processes(GetParam(), [](RankProcess& rank) {
    const auto me = static_cast<size_t>(rank.rank());
    const auto first = make_data_of_all(rank.size(), {.count = 12});
    const auto second = make_data_of_all(rank.size(), {.dtype = HVD_INT32, .count = 60});
    for (const hvd_kind kind : {HVD_ALLGATHER, HVD_REDUCESCATTER}) {
      const Call a = Call(kind, "a", HVD_FLOAT32, {6, 2}).input(first[me].data());
      const Call b = Call(kind, "b", HVD_INT32, {20, 3}).input(second[me].data());
      const hvd_request requests[] = {a.request(), b.request()};
      hvd_handle handle = 0;

      ASSERT_EQ(hvd_submit_group(requests, 2, &handle), HVD_OK) << hvd_last_error();
      ASSERT_EQ(hvd_wait(handle, HVD_FOREVER), HVD_OK) << hvd_last_error();

      if (kind == HVD_ALLGATHER) {
        EXPECT_EQ(output_bytes(handle, 0), reference_allgather(first));
        EXPECT_EQ(output_bytes(handle, 1), reference_allgather(second));
      } else {
        EXPECT_EQ(
            output_bytes(handle, 0),
            reference_reducescatter(
                {.reduce = {}, .rows = 6, .row_elements = 2, .receiver = rank.rank()}, first));
        EXPECT_EQ(output_bytes(handle, 1), reference_reducescatter({.reduce = {.dtype = HVD_INT32},
                                                                    .rows = 20,
                                                                    .row_elements = 3,
                                                                    .receiver = rank.rank()},
                                                                   second));
      }
      EXPECT_EQ(hvd_release(handle), HVD_OK);
    }
  });
}

TEST_P(CapiGroups, APreparedOperationRepeatsWithTheSameResult) {
  run_processes(GetParam(), [](RankProcess& rank) {
    for (const Placement placement : {Placement::kPrivate, Placement::kShared}) {
      Tensors tensors(rank, "prepared", 9, placement);
      const auto requests = tensors.requests();
      hvd_prepared* prepared = nullptr;
      ASSERT_EQ(hvd_prepare(requests.data(), requests.size(), &prepared), HVD_OK)
          << hvd_last_error();

      for (int step = 0; step < 20; ++step) {
        rank.phase("prepared step " + std::to_string(step));
        tensors.fill();
        if (step % 2 == 0) {
          ASSERT_EQ(hvd_prepared_run(prepared, HVD_FOREVER), HVD_OK) << hvd_last_error();
        } else {
          hvd_handle handle = 0;
          ASSERT_EQ(hvd_prepared_submit(prepared, &handle), HVD_OK) << hvd_last_error();
          ASSERT_EQ(hvd_poll(handle), HVD_IN_PROGRESS);
          finish(handle);
        }
        tensors.expect_sums();
      }
      hvd_prepared_free(prepared);
    }
  });
}

TEST_P(CapiGroups, APreparedTensorTakesOtherBuffers) {
  run_processes(GetParam(), [](RankProcess& rank) {
    const auto n = static_cast<float>(rank.size());
    std::vector<float> first(50, 1.0f);
    std::vector<float> second(50, 2.0f);
    const Call call = float_allreduce("swap", first);
    const hvd_request request = call.request();
    hvd_prepared* prepared = nullptr;
    ASSERT_EQ(hvd_prepare(&request, 1, &prepared), HVD_OK) << hvd_last_error();
    ASSERT_EQ(hvd_prepared_run(prepared, HVD_FOREVER), HVD_OK) << hvd_last_error();

    ASSERT_EQ(hvd_prepared_set_buffers(prepared, 0, second.data(), second.data()), HVD_OK);
    ASSERT_EQ(hvd_prepared_run(prepared, HVD_FOREVER), HVD_OK) << hvd_last_error();

    EXPECT_EQ(first, std::vector<float>(50, n));
    EXPECT_EQ(second, std::vector<float>(50, 2 * n));
    EXPECT_EQ(hvd_prepared_set_buffers(prepared, 1, second.data(), second.data()),
              HVD_INVALID_ARGUMENT);
    EXPECT_EQ(hvd_prepared_set_buffers(prepared, 0, nullptr, nullptr), HVD_INVALID_ARGUMENT);
    hvd_prepared_free(prepared);
    hvd_prepared_free(nullptr);
  });
}

TEST_P(CapiGroups, SeveralPreparedOperationsMayBeInFlight) {
  run_processes(GetParam(), [](RankProcess& rank) {
    constexpr size_t kCount = 8;
    const auto n = static_cast<float>(rank.size());
    std::vector<std::vector<float>> tensors(kCount, std::vector<float>(700));
    std::vector<hvd_prepared*> prepared(kCount);
    std::vector<hvd_handle> handles(kCount);
    for (size_t i = 0; i < kCount; ++i) {
      const Call call = float_allreduce("p" + std::to_string(i), tensors[i]);
      const hvd_request request = call.request();
      ASSERT_EQ(hvd_prepare(&request, 1, &prepared[i]), HVD_OK) << hvd_last_error();
    }

    for (int step = 0; step < 30; ++step) {
      for (size_t i = 0; i < kCount; ++i) {
        tensors[i].assign(700, static_cast<float>(i));
        ASSERT_EQ(hvd_prepared_submit(prepared[i], &handles[i]), HVD_OK) << hvd_last_error();
      }
      ASSERT_EQ(hvd_wait_many(handles.data(), kCount, HVD_FOREVER), HVD_OK) << hvd_last_error();
      for (size_t i = 0; i < kCount; ++i) {
        EXPECT_EQ(tensors[i], std::vector<float>(700, n * static_cast<float>(i)));
        EXPECT_EQ(hvd_release(handles[i]), HVD_OK);
      }
    }
    for (hvd_prepared* each : prepared) hvd_prepared_free(each);
  });
}

TEST(CapiGroupErrors, APreparedOperationIsInFlightOnlyOnce) {
  run_processes(2, [](RankProcess& rank) {
    std::vector<float> values(10, 1.0f);
    const Call call = float_allreduce("once", values);
    const hvd_request request = call.request();
    hvd_prepared* prepared = nullptr;
    ASSERT_EQ(hvd_prepare(&request, 1, &prepared), HVD_OK) << hvd_last_error();
    hvd_handle handle = 0;
    hvd_handle second = 0;
    if (rank.rank() == 0) {
      ASSERT_EQ(hvd_prepared_submit(prepared, &handle), HVD_OK);
      EXPECT_EQ(hvd_prepared_submit(prepared, &second), HVD_INVALID_ARGUMENT);
      rank.board().set(0, 1);
    } else {
      ASSERT_TRUE(rank.board().wait_at_least(0, 1, seconds(20)));
      ASSERT_EQ(hvd_prepared_submit(prepared, &handle), HVD_OK);
    }
    finish(handle);
    EXPECT_EQ(values, std::vector<float>(10, 2.0f));
    hvd_prepared_free(prepared);
  });
}

TEST(CapiGroupErrors, AGroupWithAPendingNameIsRefusedAsAWhole) {
  run_processes(2, [](RankProcess& rank) {
    std::vector<float> a(4, 1.0f);
    std::vector<float> b(4, 1.0f);
    const Call call_a = float_allreduce("a", a);
    const Call call_b = float_allreduce("b", b);
    if (rank.rank() == 0) {
      const hvd_handle pending = call_b.submitted();
      const hvd_request group[] = {call_a.request(), call_b.request()};
      hvd_handle handle = 0;
      EXPECT_EQ(hvd_submit_group(group, 2, &handle), HVD_INVALID_ARGUMENT);
      rank.board().set(0, 1);
      finish(pending);
    } else {
      ASSERT_TRUE(rank.board().wait_at_least(0, 1, seconds(20)));
      finish(call_b.submitted());
    }
    // "a" was not left behind: it is free and runs alone.
    EXPECT_EQ(call_a.run(), HVD_OK) << hvd_last_error();
    EXPECT_EQ(a, std::vector<float>(4, 2.0f));
  });
}

// What this rank submits: lists of names, one name or a group each.
std::vector<hvd_status> run_lists(const std::vector<std::vector<std::string>>& lists,
                                  std::vector<std::string>& errors) {
  std::vector<std::vector<float>> memory;
  std::vector<std::vector<Call>> calls;
  for (const auto& list : lists) {
    calls.emplace_back();
    for (const std::string& name : list) {
      memory.emplace_back(8, 1.0f);
      calls.back().push_back(float_allreduce(name, memory.back()));
    }
  }
  std::vector<hvd_handle> handles;
  for (const auto& list : calls) {
    std::vector<hvd_request> requests;
    for (const Call& call : list) requests.push_back(call.request());
    hvd_handle handle = 0;
    EXPECT_EQ(hvd_submit_group(requests.data(), requests.size(), &handle), HVD_OK);
    handles.push_back(handle);
  }
  std::vector<hvd_status> statuses;
  for (const hvd_handle handle : handles) {
    statuses.push_back(hvd_wait(handle, HVD_FOREVER));
    errors.emplace_back(hvd_last_error());
    EXPECT_EQ(hvd_release(handle), HVD_OK);
  }
  return statuses;
}

TEST(CapiGroupErrors, RanksThatGroupTheSameNamesDifferentlyAreToldSo) {
  run_processes(2, [](RankProcess& rank) {
    for (int round = 0; round < 3; ++round) {
      std::vector<std::string> errors;
      const auto statuses = rank.rank() == 0 ? run_lists({{"a", "b"}, {"other"}}, errors)
                                             : run_lists({{"a"}, {"other"}, {"b"}}, errors);

      EXPECT_EQ(statuses[0], HVD_PRECONDITION_ERROR) << errors[0];
      EXPECT_NE(errors[0].find("rank 0 sent group ['a', 'b']"), std::string::npos) << errors[0];
      EXPECT_NE(errors[0].find("rank 1 sent 'a'"), std::string::npos) << errors[0];
      EXPECT_EQ(statuses[1], HVD_OK) << "what is alike goes on: " << errors[1];
      if (rank.rank() == 1) {
        EXPECT_EQ(statuses[2], HVD_PRECONDITION_ERROR) << errors[2];
      }
    }
    std::vector<std::string> errors;
    EXPECT_EQ(run_lists({{"a", "b"}, {"c"}}, errors), (std::vector<hvd_status>{HVD_OK, HVD_OK}));
    EXPECT_EQ(run_lists({{"a"}, {"b"}}, errors), (std::vector<hvd_status>{HVD_OK, HVD_OK}));
  });
}

TEST(CapiGroupErrors, EveryRankOfADisagreementIsTold) {
  run_processes(4, [](RankProcess& rank) {
    std::vector<std::string> errors;
    const std::vector<std::vector<std::string>> lists[] = {
        {{"a", "b"}, {"c"}}, {{"a", "b", "c"}}, {{"b", "c"}, {"a"}}, {{"a", "b"}, {"c"}}};
    // Twice: the second time some of it may come from the cache.
    for (const hvd_status status : run_lists(lists[rank.rank()], errors))
      EXPECT_EQ(status, HVD_PRECONDITION_ERROR);
    for (const std::string& error : errors)
      EXPECT_NE(error.find("Mismatched groups: rank "), std::string::npos) << error;
    EXPECT_EQ(run_lists({{"a", "b", "c"}}, errors), std::vector<hvd_status>{HVD_OK});
    for (const hvd_status status : run_lists(lists[rank.rank()], errors))
      EXPECT_EQ(status, HVD_PRECONDITION_ERROR);
    ASSERT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_OK);
  });
}

TEST(CapiGroupErrors, MalformedGroupsAreRefused) {
  run_processes(1, [](RankProcess&) {
    std::vector<float> a(4);
    std::vector<float> b(4);
    const hvd_request one = float_allreduce("a", a).request();
    const Call call_a = float_allreduce("a", a);
    Call call_b = float_allreduce("b", b);
    hvd_handle handle = 0;
    hvd_prepared* prepared = nullptr;
    const auto refused = [&](const Call& first, const Call& second) {
      const hvd_request group[] = {first.request(), second.request()};
      return hvd_submit_group(group, 2, &handle) == HVD_INVALID_ARGUMENT &&
             hvd_prepare(group, 2, &prepared) == HVD_INVALID_ARGUMENT;
    };

    EXPECT_EQ(hvd_submit_group(nullptr, 2, &handle), HVD_INVALID_ARGUMENT);
    EXPECT_EQ(hvd_submit_group(&one, 0, &handle), HVD_INVALID_ARGUMENT);
    EXPECT_EQ(hvd_prepare(nullptr, 1, &prepared), HVD_INVALID_ARGUMENT);
    EXPECT_EQ(hvd_prepare(&one, 0, &prepared), HVD_INVALID_ARGUMENT);
    EXPECT_TRUE(refused(call_a, call_a)) << "the same name twice";
    EXPECT_TRUE(refused(call_a, Call(call_b).op(HVD_OP_MAX))) << "two operations";
    EXPECT_TRUE(refused(call_a, Call(call_b).scale(2.0, 1.0))) << "two factors";
    EXPECT_TRUE(refused(call_a, Call(call_b).set(7))) << "two sets";
    EXPECT_TRUE(refused(call_a, Call(HVD_ALLGATHER, "b", HVD_FLOAT32, {4}).input(b.data())))
        << "two kinds";
  });
}

}  // namespace
}  // namespace hvd::testing
