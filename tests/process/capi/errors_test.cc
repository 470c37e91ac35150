// What the C ABI answers to bad input and to ranks that disagree: a status and a text, never a hang
// or a crash, and the job goes on.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/c_api.h"
#include "tests/support/process_ranks.h"
#include "tests/support/reference.h"

namespace hvd::testing {
namespace {

using std::chrono::seconds;

bool error_names(const std::string& part) {
  return std::string(hvd_last_error()).find(part) != std::string::npos;
}

void expect_job_goes_on(RankProcess& rank, const std::string& name) {
  std::vector<float> values(30, 1.0f);
  ASSERT_EQ(float_allreduce(name, values).run(), HVD_OK) << hvd_last_error();
  EXPECT_EQ(values, std::vector<float>(30, static_cast<float>(rank.size())));
}

struct Mismatch {
  const char* name;
  const char* text;  // part of the message
  std::function<void(Call&, int rank)> change;
};

const std::vector<Mismatch>& mismatches() {
  static const std::vector<Mismatch> rows = {
      {"dtype", "ismatched data types",
       [](Call& call, int rank) { call.raw().dtype = rank == 1 ? HVD_INT32 : HVD_FLOAT32; }},
      {"kind", "ismatched operations",
       [](Call& call, int rank) { call.raw().kind = rank == 1 ? HVD_BROADCAST : HVD_ALLREDUCE; }},
      {"prescale", "rescale", [](Call& call, int rank) { call.scale(rank == 1 ? 2.0 : 1.0, 1.0); }},
      {"postscale", "postscale",
       [](Call& call, int rank) { call.scale(1.0, rank == 1 ? 2.0 : 1.0); }},
      {"op", "ismatched reduction operation",
       [](Call& call, int rank) { call.op(rank == 1 ? HVD_OP_MAX : HVD_OP_MIN); }},
      {"average", "ismatched reduction operation",
       [](Call& call, int rank) { call.op(rank == 1 ? HVD_OP_AVERAGE : HVD_OP_SUM); }},
  };
  return rows;
}

class CapiMismatch : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, CapiMismatch, ::testing::Values(2, 3, 4));

TEST_P(CapiMismatch, ReachesAllRanksWithBothValuesAndTheJobGoesOn) {
  run_processes(GetParam(), [](RankProcess& rank) {
    for (const Mismatch& row : mismatches()) {
      rank.phase(row.name);
      std::vector<float> values(30, 1.0f);
      Call call = float_allreduce(row.name, values);
      row.change(call, rank.rank());

      EXPECT_EQ(call.run(), HVD_PRECONDITION_ERROR) << row.name;
      EXPECT_TRUE(error_names(row.text)) << hvd_last_error();
      EXPECT_TRUE(error_names(row.name)) << hvd_last_error();
      EXPECT_TRUE(error_names("rank 1")) << hvd_last_error();

      expect_job_goes_on(rank, row.name);  // the name is free again
    }
  });
}

TEST_P(CapiMismatch, OfShapesNamesBothShapes) {
  run_processes(GetParam(), [](RankProcess& rank) {
    std::vector<float> values(24, 1.0f);
    const bool odd = rank.rank() == 1;
    const struct {
      hvd_kind kind;
      std::vector<int64_t> one, other;
    } rows[] = {{HVD_ALLREDUCE, {24}, {4, 6}},        {HVD_ALLREDUCE, {4, 6}, {4, 5}},
                {HVD_BROADCAST, {24}, {23}},          {HVD_ALLGATHER, {4, 6}, {4, 5}},
                {HVD_ALLGATHER, {4, 6}, {24}},        {HVD_ALLTOALL, {12, 2}, {12, 1}},
                {HVD_REDUCESCATTER, {12, 2}, {12, 1}}};
    for (const auto& row : rows) {
      Call call(row.kind, "shape", HVD_FLOAT32, odd ? row.other : row.one);
      call.input(values.data());
      const bool in_place = row.kind == HVD_ALLREDUCE || row.kind == HVD_BROADCAST;
      if (in_place) call.output(values.data());
      const hvd_handle handle = call.submitted();
      EXPECT_EQ(hvd_wait(handle, HVD_FOREVER), HVD_PRECONDITION_ERROR) << "kind " << row.kind;
      EXPECT_TRUE(error_names("shape")) << hvd_last_error();
      EXPECT_EQ(hvd_release(handle), HVD_OK);
    }
    expect_job_goes_on(rank, "shape");
  });
}

TEST_P(CapiMismatch, OfRootsNamesThem) {
  run_processes(GetParam(), [](RankProcess& rank) {
    std::vector<float> values(4);
    const auto call = Call(HVD_BROADCAST, "root", HVD_FLOAT32, {4})
                          .in_place(values.data())
                          .root(rank.rank() == 1 ? 1 : 0);

    EXPECT_EQ(call.run(), HVD_PRECONDITION_ERROR);
    EXPECT_TRUE(error_names("root")) << hvd_last_error();

    expect_job_goes_on(rank, "root");
  });
}

TEST_P(CapiMismatch, AfterCachedSuccessIsStillFound) {
  run_processes(GetParam(), [](RankProcess& rank) {
    for (int round = 0; round < 5; ++round) {
      for (int step = 0; step < 3; ++step) expect_job_goes_on(rank, "cached");
      std::vector<float> values(rank.rank() == 1 ? 31 : 30);
      EXPECT_EQ(float_allreduce("cached", values).run(), HVD_PRECONDITION_ERROR) << round;
    }
    expect_job_goes_on(rank, "cached");
  });
}

TEST_P(CapiMismatch, InsideAGroupFailsTheWholeGroup) {
  run_processes(GetParam(), [](RankProcess& rank) {
    std::vector<float> a(10, 1.0f);
    std::vector<float> b(rank.rank() == 1 ? 11 : 10, 1.0f);
    const Call call_a = float_allreduce("a", a);
    const Call call_b = float_allreduce("b", b);
    const hvd_request group[] = {call_a.request(), call_b.request()};

    EXPECT_EQ(hvd_run_group(group, 2, HVD_FOREVER), HVD_PRECONDITION_ERROR);
    EXPECT_TRUE(error_names("'b'")) << hvd_last_error();

    expect_job_goes_on(rank, "a");
  });
}

TEST(CapiBadInput, IsRefusedAtOnceWithAText) {
  run_processes(2, [](RankProcess& rank) {
    std::vector<float> values(16, 1.0f);
    const auto base = [&] { return float_allreduce("bad", values); };
    const auto refused = [&](const Call& call, const char* what, hvd_status status) {
      hvd_handle handle = 7;
      EXPECT_EQ(call.submit(&handle), status) << what;
      EXPECT_STRNE(hvd_last_error(), "") << what;
      EXPECT_EQ(call.run(), status) << what;
    };
    const auto raw = [&](const char* what, const std::function<void(hvd_request&)>& change,
                         hvd_status status = HVD_INVALID_ARGUMENT) {
      Call call = base();
      change(call.raw());
      refused(call, what, status);
    };
    raw("dtype 99", [](hvd_request& r) { r.dtype = 99; });
    raw("dtype -1", [](hvd_request& r) { r.dtype = -1; });
    raw("op 99", [](hvd_request& r) { r.reduce_op = 99; });
    raw("op -1", [](hvd_request& r) { r.reduce_op = -1; });
    raw("kind 99", [](hvd_request& r) { r.kind = 99; });
    raw("kind -1", [](hvd_request& r) { r.kind = -1; });
    raw("kind adasum", [](hvd_request& r) { r.kind = HVD_ADASUM; });
    raw("wire dtype", [](hvd_request& r) { r.wire_dtype = HVD_INT8; });
    raw("wire of max", [](hvd_request& r) {
      r.wire_dtype = HVD_FLOAT16;
      r.reduce_op = HVD_OP_MAX;
    });
    raw("process set 5", [](hvd_request& r) { r.process_set = 5; });
    raw("process set -1", [](hvd_request& r) { r.process_set = -1; });
    raw("device -2", [](hvd_request& r) { r.device = -2; });
    raw("progress 9", [](hvd_request& r) { r.progress = 9; });
    raw("null input", [](hvd_request& r) { r.input = nullptr; });
    raw("struct_size 3", [](hvd_request& r) { r.struct_size = 3; });
    raw("struct_size 0", [](hvd_request& r) { r.struct_size = 0; });
    raw("prescale", [](hvd_request& r) { r.prescale = std::nan(""); });
    raw("postscale", [](hvd_request& r) { r.postscale = std::numeric_limits<double>::infinity(); });
    refused(Call(HVD_BROADCAST, "r", HVD_FLOAT32, {16}).in_place(values.data()).root(2), "root 2",
            HVD_INVALID_ARGUMENT);
    refused(Call(HVD_BROADCAST, "r", HVD_FLOAT32, {16}).in_place(values.data()).root(-1), "root -1",
            HVD_INVALID_ARGUMENT);
    refused(base().splits({8, 8}), "splits of an allreduce", HVD_INVALID_ARGUMENT);
    expect_job_goes_on(rank, "bad");
  });
}

TEST(CapiBadInput, AbsurdShapesAreRefusedBeforeAnythingIsTouched) {
  run_processes(1, [](RankProcess& rank) {
    std::vector<float> values(16, 1.0f);
    const int64_t huge = std::numeric_limits<int64_t>::max();
    const std::vector<std::vector<int64_t>> shapes = {{-1},           {huge},
                                                      {huge, huge},   {1 << 30, 1 << 30},
                                                      {4, -4},        std::vector<int64_t>(65, 1),
                                                      {0, huge, huge}};
    for (const auto& shape : shapes) {
      hvd_handle handle = 0;
      EXPECT_EQ(
          Call(HVD_ALLREDUCE, "absurd", HVD_FLOAT32, shape).in_place(values.data()).submit(&handle),
          HVD_INVALID_ARGUMENT)
          << shape.size() << " dimensions, first " << shape[0];
    }
    Call negative = float_allreduce("ndim", values);
    hvd_request request = negative.request();
    hvd_handle handle = 0;
    request.ndim = -1;
    EXPECT_EQ(hvd_submit(&request, &handle), HVD_INVALID_ARGUMENT);
    request.ndim = 1;
    request.shape = nullptr;
    EXPECT_EQ(hvd_submit(&request, &handle), HVD_INVALID_ARGUMENT);
    const std::string long_name(5000, 'n');
    EXPECT_EQ(float_allreduce(long_name, values).submit(&handle), HVD_INVALID_ARGUMENT);
    void* buffer = nullptr;
    EXPECT_NE(hvd_buffer_alloc(std::numeric_limits<size_t>::max(), &buffer), HVD_OK);
    EXPECT_NE(hvd_buffer_alloc(size_t{1} << 60, &buffer), HVD_OK);
    expect_job_goes_on(rank, "absurd");
  });
}

TEST(CapiBadInput, SplitsMustFitTheRows) {
  run_processes(2, [](RankProcess& rank) {
    std::vector<float> rows(7, 1.0f);
    const auto call = [&](std::vector<int32_t> splits) {
      return Call(HVD_ALLTOALL, "splits", HVD_FLOAT32, {7}).input(rows.data()).splits(splits);
    };
    hvd_handle handle = 0;
    EXPECT_EQ(call({4, 4}).submit(&handle), HVD_INVALID_ARGUMENT) << "more rows than there are";
    EXPECT_EQ(call({7}).submit(&handle), HVD_INVALID_ARGUMENT) << "one split for two ranks";
    EXPECT_EQ(call({2, 2, 2}).submit(&handle), HVD_INVALID_ARGUMENT);
    EXPECT_EQ(call({-1, 3}).submit(&handle), HVD_INVALID_ARGUMENT);
    EXPECT_EQ(call({}).submit(&handle), HVD_INVALID_ARGUMENT) << "7 rows don't divide by 2";
    expect_job_goes_on(rank, "splits");
  });
}

TEST(CapiBadInput, ReducescatterTakesOnlyAverageAndSum) {
  run_processes(2, [](RankProcess& rank) {
    std::vector<float> values(6, 1.0f);
    hvd_handle handle = 0;
    const Call call = Call(HVD_REDUCESCATTER, "s", HVD_FLOAT32, {6}).input(values.data());
    for (const int op : {HVD_OP_MIN, HVD_OP_MAX, HVD_OP_PRODUCT, HVD_OP_ADASUM}) {
      EXPECT_EQ(Call(call).op(op).submit(&handle), HVD_ABORTED) << op;
    }
    EXPECT_EQ(Call(HVD_REDUCESCATTER, "s", HVD_FLOAT32, {}).input(values.data()).submit(&handle),
              HVD_INVALID_ARGUMENT)
        << "a scalar has no rows";
    expect_job_goes_on(rank, "s");
  });
}

TEST(CapiBadInput, NullPointersAreRefused) {
  run_processes(1, [](RankProcess&) {
    std::vector<float> values(4);
    const Call call = float_allreduce("null", values);
    const hvd_request request = call.request();
    hvd_handle handle = 0;
    EXPECT_EQ(hvd_submit(nullptr, &handle), HVD_INVALID_ARGUMENT);
    EXPECT_EQ(hvd_submit(&request, nullptr), HVD_INVALID_ARGUMENT);
    EXPECT_EQ(hvd_run(nullptr, HVD_FOREVER), HVD_INVALID_ARGUMENT);
    EXPECT_EQ(hvd_submit_group(&request, 1, nullptr), HVD_INVALID_ARGUMENT);
    EXPECT_EQ(hvd_prepare(&request, 1, nullptr), HVD_INVALID_ARGUMENT);
    EXPECT_EQ(hvd_prepared_run(nullptr, HVD_FOREVER), HVD_INVALID_ARGUMENT);
    EXPECT_EQ(hvd_prepared_submit(nullptr, &handle), HVD_INVALID_ARGUMENT);
    EXPECT_EQ(hvd_prepared_set_buffers(nullptr, 0, values.data(), values.data()),
              HVD_INVALID_ARGUMENT);
    EXPECT_EQ(hvd_wait_many(nullptr, 3, HVD_FOREVER), HVD_INVALID_ARGUMENT);
    EXPECT_EQ(hvd_buffer_alloc(16, nullptr), HVD_INVALID_ARGUMENT);
    EXPECT_EQ(hvd_buffer_free(values.data()), HVD_INVALID_ARGUMENT) << "no shared buffer";
    EXPECT_EQ(hvd_buffer_contains(values.data(), 4), 0);
    EXPECT_EQ(hvd_buffer_contains(nullptr, 0), 0);
    EXPECT_EQ(hvd_get_stats(nullptr), HVD_INVALID_ARGUMENT);
    EXPECT_EQ(hvd_get_capabilities(nullptr), HVD_INVALID_ARGUMENT);
    EXPECT_EQ(hvd_join(nullptr, HVD_FOREVER), HVD_OK) << "the answer may be ignored";
    hvd_request_init(nullptr);
    hvd_init_options_init(nullptr);
    for (const hvd_handle unknown : {hvd_handle{0}, hvd_handle{12345}, ~hvd_handle{0}}) {
      EXPECT_EQ(hvd_wait(unknown, HVD_FOREVER), HVD_INVALID_ARGUMENT);
      EXPECT_EQ(hvd_poll(unknown), HVD_INVALID_ARGUMENT);
      EXPECT_EQ(hvd_release(unknown), HVD_INVALID_ARGUMENT);
    }
  });
}

TEST(CapiBadInput, ANameMayBePendingOnlyOnce) {
  run_processes(2, [](RankProcess& rank) {
    std::vector<float> values(4, 1.0f);
    std::vector<float> other(4, 1.0f);
    const Call call = float_allreduce("twice", values);
    if (rank.rank() == 0) {
      const hvd_handle handle = call.submitted();
      hvd_handle second = 0;
      EXPECT_EQ(float_allreduce("twice", other).submit(&second), HVD_INVALID_ARGUMENT);
      EXPECT_TRUE(error_names("twice")) << hvd_last_error();
      rank.board().set(0, 1);
      finish(handle);
    } else {
      ASSERT_TRUE(rank.board().wait_at_least(0, 1, seconds(20)));
      ASSERT_EQ(call.run(), HVD_OK) << hvd_last_error();
    }
    expect_job_goes_on(rank, "twice");
  });
}

}  // namespace
}  // namespace hvd::testing
