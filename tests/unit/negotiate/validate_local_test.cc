#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "negotiate/validate.h"
#include "tests/unit/negotiate/requests.h"
#include "wire/limits.h"

namespace hvd::negotiate {
namespace {

using test::alltoall;
using test::changed;
using test::request_of;
using test::tensors_of;
using test::with_ranks;
using ::testing::HasSubstr;
using wire::Kind;
using wire::Request;
using wire::TensorSpec;

const std::vector<int32_t> kFour = {0, 1, 2, 3};
constexpr Kind kDataKinds[] = {Kind::kAllreduce, Kind::kAllgather, Kind::kBroadcast,
                               Kind::kAdasum,    Kind::kAlltoall,  Kind::kReducescatter};

struct Case {
  Request request;
  const char* message;
};

void expect_invalid(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const Status status = validate_local(c.request, kFour);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(status.message(), HasSubstr(c.message));
  }
}

void expect_ok(const std::vector<Request>& requests) {
  for (const Request& request : requests) {
    const Status status = validate_local(request, kFour);
    EXPECT_TRUE(status.is_ok()) << status.message();
  }
}

Request group(Kind kind, const std::vector<std::string>& names) {
  Request request = tensors_of(kind, {});
  for (const std::string& name : names) request.tensors.push_back({.name = name, .shape = {4}});
  return request;
}

TEST(ValidateLocal, AcceptsOrdinaryRequestsOfEveryKind) {
  for (Kind kind : kDataKinds) expect_ok({request_of(kind, {4, 3})});
  expect_ok({
      with_ranks(Kind::kJoin, {}),
      with_ranks(Kind::kBarrier, {}),
      with_ranks(Kind::kProcessSetAdd, {2, 0}),
      with_ranks(Kind::kProcessSetRemove, {1}),
  });
}

TEST(ValidateLocal, AcceptsScalarsAndEmptyTensorsInAllreduce) {
  expect_ok({
      request_of(Kind::kAllreduce, std::vector<int64_t>{}),
      request_of(Kind::kAllreduce, {0}),
      request_of(Kind::kAllreduce, {3, 0, 5}),
      request_of(Kind::kAdasum, std::vector<int64_t>{}),
      request_of(Kind::kBroadcast, std::vector<int64_t>{}),
  });
}

// A local failure would leave the other ranks waiting; negotiation tells all of them.
TEST(ValidateLocal, LeavesScalarsInAllgatherAndAlltoallToNegotiation) {
  expect_ok({request_of(Kind::kAllgather, std::vector<int64_t>{}),
             request_of(Kind::kAlltoall, std::vector<int64_t>{})});
}

TEST(ValidateLocal, RefusesScalarsInReducescatter) {
  expect_invalid({{request_of(Kind::kReducescatter, std::vector<int64_t>{}),
                   "reducescatter 'x': a rank-zero tensor cannot be scattered"}});
}

TEST(ValidateLocal, AbortsReducescatterOtherThanAverageAndSum) {
  for (int code = 0; code < kReduceOpCount; ++code) {
    Request request = request_of(Kind::kReducescatter, {4});
    request.reduce_op = static_cast<ReduceOp>(code);

    const Status status = validate_local(request, kFour);

    const bool is_allowed =
        request.reduce_op == ReduceOp::kAverage || request.reduce_op == ReduceOp::kSum;
    EXPECT_EQ(status.code(), is_allowed ? StatusCode::kOk : StatusCode::kAborted);
  }
}

TEST(ValidateLocal, ReducescatterOpComesBeforeOtherProblems) {
  Request request = request_of(Kind::kReducescatter, {-1});
  request.reduce_op = ReduceOp::kMin;

  const Status status = validate_local(request, kFour);

  EXPECT_EQ(status.code(), StatusCode::kAborted);
  EXPECT_EQ(status.message(), "reducescatter 'x': only Average and Sum are supported, got Min");
}

TEST(ValidateLocal, RefusesAdasumUnderTheKindAllreduce) {
  expect_invalid({{changed(request_of(Kind::kAllreduce, {4}),
                           [](Request& r) { r.reduce_op = ReduceOp::kAdasum; }),
                   "got Adasum"}});
}

TEST(ValidateLocal, AdasumNeedsAFloatingDtype) {
  for (int code = 0; code < kDTypeCount; ++code) {
    const DType dtype = static_cast<DType>(code);

    const Status status = validate_local(request_of(Kind::kAdasum, {4}, dtype), kFour);

    EXPECT_EQ(status.is_ok(), is_floating(dtype)) << dtype_name(dtype);
    if (!status.is_ok()) {
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    }
  }
}

TEST(ValidateLocal, WireDtypeIsForFloat32SumsAndAverages) {
  const auto with_wire = [](Kind kind, ReduceOp op, DType dtype, int32_t wire_dtype) {
    return changed(request_of(kind, {4}, dtype), [&](Request& r) {
      r.reduce_op = op;
      r.wire_dtype = wire_dtype;
    });
  };
  constexpr auto f32 = DType::kFloat32;

  expect_ok({with_wire(Kind::kAllreduce, ReduceOp::kSum, f32, 6),
             with_wire(Kind::kAllreduce, ReduceOp::kAverage, f32, 10)});
  expect_invalid({
      {with_wire(Kind::kAllreduce, ReduceOp::kSum, f32, 7), "float16 or bfloat16, got float32"},
      {with_wire(Kind::kAllreduce, ReduceOp::kSum, f32, 11), "float16 or bfloat16, got code 11"},
      {with_wire(Kind::kAllreduce, ReduceOp::kSum, f32, -2), "float16 or bfloat16, got code -2"},
      {with_wire(Kind::kAllreduce, ReduceOp::kMax, f32, 6), "only for allreduce with Sum"},
      {with_wire(Kind::kReducescatter, ReduceOp::kSum, f32, 6), "only for allreduce with Sum"},
      {with_wire(Kind::kAllgather, ReduceOp::kSum, f32, 6), "only for allreduce with Sum"},
      {with_wire(Kind::kAdasum, ReduceOp::kAdasum, f32, 6), "only for allreduce with Sum"},
      {with_wire(Kind::kAllreduce, ReduceOp::kSum, DType::kFloat64, 6), "got float64"},
  });
}

TEST(ValidateLocal, RefusesAbsurdShapes) {
  const int64_t limit = static_cast<int64_t>(wire::kMaxTensorBytes);
  const auto most = std::numeric_limits<int64_t>::max();
  const auto byte_tensor = [](std::vector<int64_t> shape) {
    return request_of(Kind::kAllreduce, std::move(shape), DType::kUint8);
  };

  expect_ok({byte_tensor({limit}), request_of(Kind::kAllreduce, {limit / 4}),
             byte_tensor(std::vector<int64_t>(wire::kMaxDimensions, 1))});
  expect_invalid({
      {byte_tensor({2, -1}), "negative dimension -1 in shape [2, -1]"},
      {byte_tensor({limit + 1}),
       "absurd size: uint8 of shape [70368744177665] is over 70368744177664 bytes"},
      {request_of(Kind::kAllreduce, {limit / 4 + 1}), "absurd size: float32"},
      {byte_tensor({most, most, most}), "absurd size"},
      {byte_tensor({0, most, most}), "absurd size"},
      {byte_tensor({most, most, -5}), "negative dimension -5"},
      {byte_tensor(std::vector<int64_t>(wire::kMaxDimensions + 1, 1)),
       "expected at most 64 dimensions, got 65"},
  });
}

TEST(ValidateLocal, NamesTheGroupMemberThatIsWrong) {
  Request request = group(Kind::kAllreduce, {"a", "b", "c"});
  request.tensors[2].shape = {-4};

  const Status status = validate_local(request, kFour);

  EXPECT_EQ(status.message(),
            "allreduce group ['a', 'b', ...] (3): tensor 'c': negative dimension -4 in shape [-4]");
}

TEST(ValidateLocal, LimitsNames) {
  expect_ok({group(Kind::kAllreduce, {std::string(wire::kMaxNameBytes, 'x')}),
             group(Kind::kAllreduce, {""})});
  expect_invalid({{group(Kind::kAllreduce, {std::string(wire::kMaxNameBytes + 1, 'x')}),
                   "expected a name of at most 4096 bytes, got 4097"}});
}

TEST(ValidateLocal, UnnamedRequestsAreCalledByTheirKind) {
  Request request = group(Kind::kBroadcast, {""});
  request.root_rank = 9;

  EXPECT_EQ(validate_local(request, kFour).message(),
            "broadcast: root rank 9 is not a member of the process set");
}

TEST(ValidateLocal, GroupsAreForFourKinds) {
  for (Kind kind : {Kind::kAllreduce, Kind::kAdasum, Kind::kAllgather, Kind::kReducescatter}) {
    expect_ok({group(kind, {"a", "b"})});
  }
  for (Kind kind : {Kind::kBroadcast, Kind::kAlltoall, Kind::kBarrier, Kind::kJoin}) {
    expect_invalid({{group(kind, {"a", "b"}), "takes no group, got 2 tensors"}});
  }
}

TEST(ValidateLocal, RefusesEmptyGroups) {
  for (Kind kind : kDataKinds) expect_invalid({{group(kind, {}), "empty group"}});
}

TEST(ValidateLocal, RefusesDuplicateNamesInAGroupButNotUnnamedMembers) {
  expect_ok({group(Kind::kAllreduce, {"", "a", ""})});
  expect_invalid(
      {{group(Kind::kAllreduce, {"b", "a", "c", "a"}), "duplicate tensor name 'a' in the group"}});
}

TEST(ValidateLocal, RefusesGroupsOfTooManyTensors) {
  Request request = group(Kind::kAllreduce, {});
  request.tensors.resize(wire::kMaxTensorsPerRequest + 1);

  EXPECT_THAT(validate_local(request, kFour).message(),
              HasSubstr("expected at most 1048576 tensors, got 1048577"));
}

TEST(ValidateLocal, RefusesGroupsWhoseDescriptionIsTooLong) {
  Request request = group(Kind::kAllreduce, {});
  const size_t count = wire::kMaxMessageBytes / wire::kMaxNameBytes;
  request.tensors.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    std::string name = std::to_string(i);
    name.resize(wire::kMaxNameBytes, 'x');
    request.tensors.push_back({.name = std::move(name), .shape = {1}});
  }

  EXPECT_THAT(validate_local(request, kFour).message(),
              HasSubstr("describing the group takes 269811751 bytes, at most 268435456"));
}

TEST(ValidateLocal, GroupsMayMixDtypes) {
  Request request = group(Kind::kReducescatter, {"a", "b"});
  request.tensors[1].dtype = DType::kInt64;

  expect_ok({request});
}

TEST(ValidateLocal, FactorsMustBeFinite) {
  const double bad[] = {std::numeric_limits<double>::quiet_NaN(),
                        std::numeric_limits<double>::infinity(),
                        -std::numeric_limits<double>::infinity()};

  for (double value : bad) {
    expect_invalid({
        {changed(request_of(Kind::kAllreduce, {4}), [&](Request& r) { r.prescale = value; }),
         "prescale factor must be finite, got"},
        {changed(request_of(Kind::kAllreduce, {4}), [&](Request& r) { r.postscale = value; }),
         "postscale factor must be finite, got"},
    });
  }
  expect_ok({changed(request_of(Kind::kAllreduce, {4}), [](Request& r) { r.prescale = 0.0; })});
}

TEST(ValidateLocal, BroadcastRootMustBeAMember) {
  const std::vector<int32_t> odd = {1, 3};
  const auto rooted = [](int32_t root) {
    return changed(request_of(Kind::kBroadcast, {4}), [&](Request& r) { r.root_rank = root; });
  };

  EXPECT_TRUE(validate_local(rooted(3), odd).is_ok());
  EXPECT_EQ(validate_local(rooted(0), odd).message(),
            "broadcast 'x': root rank 0 is not a member of the process set");
  EXPECT_EQ(validate_local(rooted(0), odd).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(validate_local(rooted(-1), odd).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(validate_local(rooted(77), {}).is_ok())
      << "no set given, so nothing to check against";
}

TEST(ValidateLocal, AlltoallSplits) {
  expect_ok({
      alltoall({8, 2}, {}),
      alltoall({0, 2}, {}),
      alltoall({8}, {1, 2, 3, 2}),
      alltoall({8}, {0, 0, 0, 8}),
      alltoall({8}, {1, 1, 1, 1}),  // trailing rows are not sent
      alltoall({0}, {0, 0, 0, 0}),
  });
  expect_invalid({
      {alltoall({7}, {}), "the first dimension, 7, is not a multiple of the process set size, 4"},
      {alltoall({8}, {4, 4}), "expected 4, got 2"},
      {alltoall({8}, {2, 2, 2, 1, 1}), "expected 4, got 5"},
      {alltoall({8}, {3, 3, 3, -1}), "splits[3] is negative: -1"},
      {alltoall({8}, {3, 3, 3, 0}), "splits add up to 9 rows, but the tensor has 8"},
      {alltoall({8}, {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX}), "add up to 8589934588 rows"},
  });
}

TEST(ValidateLocal, EvenSplitsMustFitTheirType) {
  Request request = alltoall({int64_t{4} << 31}, {});
  request.tensors[0].dtype = DType::kUint8;

  expect_invalid({{request, "does not fit int32"}});
}

TEST(ValidateLocal, ChecksTheSumOfSplitsEvenWithoutASet) {
  EXPECT_TRUE(validate_local(alltoall({7}, {}), {}).is_ok());
  EXPECT_FALSE(validate_local(alltoall({2}, {2, 1}), {}).is_ok());
}

TEST(ValidateLocal, SplitsAreOnlyForAlltoall) {
  Request request = alltoall({4}, {1, 1, 1, 1});
  request.kind = Kind::kAllgather;

  expect_invalid({{request, "splits are only for alltoall"}});
}

TEST(ValidateLocal, ProcessSets) {
  expect_invalid({
      {with_ranks(Kind::kProcessSetAdd, {}), "process_set_add: a process set needs at least one"},
      {with_ranks(Kind::kProcessSetAdd, {2, 1, 2}), "rank 2 is listed more than once"},
      {with_ranks(Kind::kProcessSetAdd, {1, -3}), "ranks must not be negative, got -3"},
      {with_ranks(Kind::kProcessSetAdd, {0, 4}), "rank 4 is out of range, the job has 4 ranks"},
      {with_ranks(Kind::kProcessSetRemove, {}), "expected one process set id, got 0"},
      {with_ranks(Kind::kProcessSetRemove, {1, 2}), "expected one process set id, got 2"},
      {with_ranks(Kind::kProcessSetRemove, {0}), "expected the id of an added process set, got 0"},
  });
  EXPECT_TRUE(validate_local(with_ranks(Kind::kProcessSetAdd, {0, 4}), {}).is_ok());
}

}  // namespace
}  // namespace hvd::negotiate
