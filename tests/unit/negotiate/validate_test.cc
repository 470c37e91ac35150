#include "negotiate/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/negotiate/requests.h"

namespace hvd::negotiate {
namespace {

using test::alltoall;
using test::changed;
using test::kJoined;
using test::request_of;
using test::tensors_of;
using test::validate_all;
using test::with_ranks;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using wire::Kind;
using wire::Request;
using wire::TensorSpec;

using Shape = std::vector<int64_t>;

std::string failure_of(const std::vector<std::optional<Request>>& requests) {
  const Result<Plan> result = validate_all(requests);
  EXPECT_FALSE(result.is_ok());
  if (result.is_ok()) return "no failure";
  EXPECT_EQ(result.status().code(), StatusCode::kPreconditionError);
  return result.status().message();
}

void expect_fits(const std::vector<std::optional<Request>>& requests) {
  const Result<Plan> result = validate_all(requests);
  EXPECT_TRUE(result.is_ok()) << result.status().message();
}

Request allreduce(Shape shape = {4}) { return request_of(Kind::kAllreduce, std::move(shape)); }

Request group(const std::vector<std::string>& names) {
  Request request = tensors_of(Kind::kAllreduce, {});
  for (const std::string& name : names) request.tensors.push_back({.name = name, .shape = {4}});
  return request;
}

TEST(Validate, NamesGlobalRanksAndBothValues) {
  const Request one = tensors_of(Kind::kAllreduce, {{.name = "fc1.grad", .shape = {4}}});
  const Request half = changed(one, [](Request& r) { r.tensors[0].dtype = DType::kFloat16; });

  EXPECT_EQ(
      failure_of({one, one, one, half}),
      "allreduce 'fc1.grad': Mismatched data types: rank 10 sent float32, rank 13 sent float16");
}

TEST(Validate, NumbersUnnamedRequests) {
  Request one = allreduce({2});
  one.tensors[0].name.clear();
  const Request two = changed(one, [](Request& r) { r.tensors[0].shape = {3}; });

  EXPECT_EQ(validate_all({one, two}, 42).status().message(),
            "allreduce 'allreduce.noname.42': Mismatched ALLREDUCE tensor shapes: rank 10 sent "
            "[2], rank 11 "
            "sent [3]");
}

TEST(Validate, ReportsEveryRowOfTheTable) {
  const auto with = [](Kind kind, auto change) {
    return changed(request_of(kind, {4, 3}), change);
  };
  const auto shape = [](Kind kind, Shape s) { return request_of(kind, std::move(s)); };
  const auto prescale = [](Request& r) { r.prescale = 0.5; };
  const auto postscale = [](Request& r) { r.postscale = 0.25; };
  const auto average = [](Request& r) { r.reduce_op = ReduceOp::kAverage; };
  const auto int64 = [](Request& r) { r.tensors[0].dtype = DType::kInt64; };
  const auto gpu = [](Request& r) { r.device = 2; };
  const auto rooted = [](Request& r) { r.root_rank = 11; };
  const auto wire = [](Request& r) { r.wire_dtype = 10; };
  const struct {
    Kind kind;
    Request other;
    const char* message;
  } rows[] = {
      {Kind::kAllreduce, with(Kind::kAllreduce, int64),
       "Mismatched data types: rank 10 sent float32, rank 11 sent int64"},
      {Kind::kAllgather, with(Kind::kAllgather, int64), "Mismatched data types"},
      {Kind::kBroadcast, with(Kind::kBroadcast, int64), "Mismatched data types"},
      {Kind::kAlltoall, with(Kind::kAlltoall, int64), "Mismatched data types"},
      {Kind::kReducescatter, with(Kind::kReducescatter, int64), "Mismatched data types"},
      {Kind::kAllreduce, shape(Kind::kAllgather, {4, 3}),
       "Mismatched operations: rank 10 sent ALLREDUCE, rank 11 sent ALLGATHER"},
      {Kind::kAllreduce, shape(Kind::kAdasum, {4, 3}),
       "Mismatched operations: rank 10 sent ALLREDUCE, rank 11 sent ADASUM"},
      {Kind::kAllreduce, with_ranks(Kind::kBarrier, {}),
       "Mismatched operations: rank 10 sent ALLREDUCE, rank 11 sent BARRIER"},
      {Kind::kAllreduce, shape(Kind::kAllreduce, {4, 4}),
       "Mismatched ALLREDUCE tensor shapes: rank 10 sent [4, 3], rank 11 sent [4, 4]"},
      {Kind::kAllreduce, shape(Kind::kAllreduce, {12}), "Mismatched ALLREDUCE tensor shapes"},
      {Kind::kAdasum, shape(Kind::kAdasum, {3, 4}), "Mismatched ADASUM tensor shapes"},
      {Kind::kBroadcast, shape(Kind::kBroadcast, {4}), "Mismatched BROADCAST tensor shapes"},
      {Kind::kReducescatter, shape(Kind::kReducescatter, {8, 3}),
       "Mismatched REDUCESCATTER tensor shapes"},
      {Kind::kAllreduce, with(Kind::kAllreduce, prescale),
       "Mismatched prescale and/or postscale factors: rank 10 sent prescale 1 and postscale 1, "
       "rank "
       "11 sent prescale 0.5 and postscale 1"},
      {Kind::kAllreduce, with(Kind::kAllreduce, postscale), "Mismatched prescale and/or postscale"},
      {Kind::kAdasum, with(Kind::kAdasum, prescale), "Mismatched prescale and/or postscale"},
      {Kind::kReducescatter, with(Kind::kReducescatter, postscale),
       "Mismatched prescale and/or postscale factors"},
      {Kind::kAllreduce, with(Kind::kAllreduce, average),
       "Mismatched reduction operation: rank 10 sent Sum, rank 11 sent Average"},
      {Kind::kReducescatter, with(Kind::kReducescatter, average),
       "Mismatched reduction operation: rank 10 sent Sum, rank 11 sent Average"},
      {Kind::kAllreduce, with(Kind::kAllreduce, wire),
       "Mismatched wire data types: rank 10 sent none, rank 11 sent bfloat16"},
      {Kind::kAllgather, shape(Kind::kAllgather, {}), "rank 11: a rank-zero tensor is not allowed"},
      {Kind::kAlltoall, shape(Kind::kAlltoall, {}), "rank 11: a rank-zero tensor is not allowed"},
      {Kind::kAllgather, shape(Kind::kAllgather, {4}),
       "Mismatched ALLGATHER tensor shapes: rank 10 sent [4, 3], rank 11 sent [4]"},
      {Kind::kAllgather, shape(Kind::kAllgather, {4, 2}), "Mismatched ALLGATHER tensor shapes"},
      {Kind::kAlltoall, shape(Kind::kAlltoall, {4, 3, 1}), "Mismatched ALLTOALL tensor shapes"},
      {Kind::kAlltoall, alltoall({4, 3}, {1}), "rank 11: splits need one entry per rank"},
      {Kind::kBroadcast, with(Kind::kBroadcast, rooted),
       "Mismatched BROADCAST root ranks: rank 10 sent root rank 0, rank 11 sent root rank 11"},
      {Kind::kAllreduce, with(Kind::kAllreduce, gpu),
       "Mismatched ALLREDUCE CPU/GPU device selection: rank 10 sent CPU, rank 11 sent GPU 2"},
      {Kind::kAllgather, with(Kind::kAllgather, gpu),
       "Mismatched ALLGATHER CPU/GPU device selection"},
      {Kind::kBroadcast, with(Kind::kBroadcast, gpu),
       "Mismatched BROADCAST CPU/GPU device selection"},
  };

  for (const auto& row : rows) {
    const Request one = request_of(row.kind, {4, 3});
    EXPECT_THAT(failure_of({one, row.other}), HasSubstr(row.message));
  }
}

TEST(Validate, DifferentGpusAreNoMismatch) {
  const auto on = [](int32_t gpu) {
    return changed(allreduce(), [&](Request& r) { r.device = gpu; });
  };

  expect_fits({on(0), on(1)});
}

TEST(Validate, RefusesScalarReducescatterThatSlippedThrough) {
  const Request scalar = request_of(Kind::kReducescatter, Shape{});

  EXPECT_THAT(failure_of({scalar, scalar}), HasSubstr("a rank-zero tensor is not allowed"));
}

TEST(Validate, ComparesFactorsBitByBit) {
  const auto scaled = [](double value) {
    return changed(allreduce(), [&](Request& r) { r.postscale = value; });
  };

  expect_fits({scaled(1.0 / 3), scaled(1.0 / 3)});
  EXPECT_THAT(failure_of({scaled(1.0 / 3), scaled(std::nextafter(1.0 / 3, 1))}),
              HasSubstr("Mismatched prescale and/or postscale factors"));
  EXPECT_THAT(failure_of({scaled(0.0), scaled(-0.0)}), HasSubstr("postscale -0"));
}

TEST(Validate, FactorsAndOpsOfUnscaledKindsDoNotMatter) {
  for (Kind kind : {Kind::kAllgather, Kind::kBroadcast, Kind::kAlltoall}) {
    const Request one = request_of(kind, {4});
    expect_fits({one, changed(one, [](Request& r) {
                   r.prescale = 2;
                   r.reduce_op = ReduceOp::kMax;
                 })});
  }
}

// Each request differs from the first by one thing more than the one before it, in the reverse
// order of the table, so every time another row has to win.
TEST(Validate, TheFirstRowOfTheTableWins) {
  const Request one = allreduce({4, 3});
  Request other = one;

  other.device = 0;
  EXPECT_THAT(failure_of({one, other}), HasSubstr("device selection"));
  other.wire_dtype = 6;
  EXPECT_THAT(failure_of({one, other}), HasSubstr("Mismatched wire data types"));
  other.reduce_op = ReduceOp::kMin;
  EXPECT_THAT(failure_of({one, other}), HasSubstr("Mismatched reduction operation"));
  other.prescale = 3;
  EXPECT_THAT(failure_of({one, other}), HasSubstr("Mismatched prescale and/or postscale"));
  other.tensors[0].shape = {};
  EXPECT_THAT(failure_of({one, other}), HasSubstr("Mismatched ALLREDUCE tensor shapes"));
  other.kind = Kind::kReducescatter;
  EXPECT_THAT(failure_of({one, other}), HasSubstr("Mismatched operations"));
  other.tensors[0].dtype = DType::kInt8;
  EXPECT_THAT(failure_of({one, other}),
              AllOf(HasSubstr("Mismatched data types"), Not(HasSubstr(";"))));
}

TEST(Validate, TheFirstRowWinsForAllgatherAndBroadcastToo) {
  const Request gather = request_of(Kind::kAllgather, {4, 3});
  const auto flat_on_gpu = [](Request& r) {
    r.tensors[0].shape = {4};
    r.device = 0;
  };
  const Request broadcast = request_of(Kind::kBroadcast, {4});
  const auto rooted_on_gpu = [](Request& r) {
    r.root_rank = 1;
    r.device = 0;
  };

  EXPECT_THAT(failure_of({gather, changed(gather, flat_on_gpu)}),
              AllOf(HasSubstr("tensor shapes"), Not(HasSubstr("device"))));
  EXPECT_THAT(failure_of({broadcast, changed(broadcast, rooted_on_gpu)}),
              AllOf(HasSubstr("root ranks"), Not(HasSubstr("device"))));
}

TEST(Validate, JoinedAndScalarNotesAreAddedToAnEarlierFailure) {
  const Request one = request_of(Kind::kAllgather, {4});
  const Request other = request_of(Kind::kAllgather, Shape{}, DType::kInt8);

  EXPECT_THAT(failure_of({one, other, kJoined}),
              AllOf(HasSubstr("Mismatched data types: rank 10 sent float32, rank 11 sent int8; "),
                    HasSubstr("; not supported with Join at this time: rank 12 has joined; "),
                    HasSubstr("; rank 11: a rank-zero tensor"), Not(HasSubstr("tensor shapes"))));
}

TEST(Validate, ReductionsGoOnWithJoinedRanks) {
  for (Kind kind : {Kind::kAllreduce, Kind::kAdasum}) {
    const Request one = request_of(kind, {4});
    expect_fits({one, kJoined, one});
    expect_fits({kJoined, one});
    expect_fits({kJoined, kJoined, one, kJoined});
  }
  expect_fits({with_ranks(Kind::kJoin, {}), kJoined});
}

TEST(Validate, MismatchesAreFoundBetweenTheRanksThatHaveNotJoined) {
  EXPECT_EQ(
      failure_of({kJoined, allreduce({4}), kJoined, allreduce({5})}),
      "allreduce 'x': Mismatched ALLREDUCE tensor shapes: rank 11 sent [4], rank 13 sent [5]");
}

TEST(Validate, OtherKindsFailWithJoinedRanksAndNameThem) {
  for (Kind kind : {Kind::kAllgather, Kind::kBroadcast, Kind::kAlltoall, Kind::kReducescatter}) {
    const Request one = request_of(kind, {4});
    EXPECT_THAT(failure_of({kJoined, one, kJoined, one}),
                HasSubstr("not supported with Join at this time: ranks 10, 12 have joined"));
  }
  for (Kind kind : {Kind::kBarrier, Kind::kProcessSetAdd, Kind::kProcessSetRemove}) {
    EXPECT_THAT(failure_of({with_ranks(kind, {1}), kJoined}),
                HasSubstr("not supported with Join at this time: rank 11 has joined"));
  }
}

TEST(Validate, OnlyAllgatherHintsAtDenseGradients) {
  EXPECT_THAT(failure_of({request_of(Kind::kAllgather, {4}), kJoined}),
              HasSubstr("sparse_as_dense=True"));
  EXPECT_THAT(failure_of({request_of(Kind::kBroadcast, {4}), kJoined}),
              Not(HasSubstr("sparse_as_dense")));
}

TEST(Validate, ComparesGroupsMemberByMember) {
  const Request one = group({"a", "b", "c"});
  const auto int8 = [](Request& r) { r.tensors[1].dtype = DType::kInt8; };
  const auto longer = [](Request& r) { r.tensors[2].shape = {5}; };

  expect_fits({one, one});
  expect_fits({changed(one, int8), changed(one, int8)});
  EXPECT_EQ(failure_of({one, changed(one, int8)}),
            "allreduce group ['a', 'b', ...] (3): tensor 'b': Mismatched data types: rank 10 sent "
            "float32, rank 11 sent int8");
  EXPECT_THAT(failure_of({one, changed(one, longer)}),
              HasSubstr("(3): tensor 'c': Mismatched ALLREDUCE tensor shapes: rank 10 sent [4], "));
}

TEST(Validate, GroupsMustHaveTheSameMembersInTheSameOrder) {
  EXPECT_THAT(failure_of({group({"a", "b"}), group({"a", "b"}), group({"a", "b", "c"})}),
              HasSubstr("Mismatched group sizes: rank 10 sent 2 tensors, rank 12 sent 3 tensors"));
  EXPECT_THAT(failure_of({group({"a", "b"}), group({"b", "a"})}),
              HasSubstr("Mismatched tensor names: rank 10 sent 'a', rank 11 sent 'b'"));
}

TEST(Validate, DifferentGroupsComeBeforeTheirDtypesButNotBeforeTheirKinds) {
  const Request two = group({"a", "b"});
  Request three = group({"a", "b", "c"});

  three.tensors[0].dtype = DType::kInt8;
  EXPECT_THAT(failure_of({two, three}), HasSubstr("Mismatched group sizes"));
  three.tensors[0].dtype = DType::kFloat32;
  three.kind = Kind::kAllgather;
  EXPECT_THAT(failure_of({two, three}), HasSubstr("Mismatched operations"));
}

TEST(Validate, SplitsAreCheckedAgainstTheSetOfRanks) {
  const struct {
    Request other;
    const char* message;
  } cases[] = {
      {alltoall({4}, {1, 1}),
       "rank 11: splits need one entry per rank of the process set: expected "
       "3, got 2"},
      {alltoall({4}, {}), "rank 11: splits are needed because the first dimension, 4, is not"},
      {alltoall({4}, {5, -1, 0}), "rank 11: splits[1] is negative: -1"},
      {alltoall({4}, {2, 2, 1}), "rank 11: splits add up to 5 rows, but the tensor has 4"},
  };

  for (const auto& c : cases) {
    const Request one = alltoall({3}, {});
    EXPECT_THAT(failure_of({one, c.other, one}), HasSubstr(c.message));
  }
}

TEST(Validate, ProcessSetChangesMustAgree) {
  const auto add = [](std::vector<int32_t> ranks) {
    return with_ranks(Kind::kProcessSetAdd, ranks);
  };
  const auto remove = [](int32_t id) { return with_ranks(Kind::kProcessSetRemove, {id}); };

  expect_fits({add({0, 1}), add({0, 1})});
  expect_fits({remove(3), remove(3)});
  EXPECT_EQ(failure_of({add({0, 1}), add({0, 2})}),
            "process_set_add #0: Mismatched process set ranks: rank 10 sent [0, 1], rank 11 sent "
            "[0, 2]");
  EXPECT_THAT(failure_of({remove(3), remove(4)}),
              HasSubstr("Mismatched process set ids: rank 10 sent [3], rank 11 sent [4]"));
  EXPECT_THAT(failure_of({add({3}), remove(3)}), HasSubstr("Mismatched operations"));
}

TEST(Validate, ASingleRankAlwaysFitsItself) {
  for (int code = 0; code < wire::kKindCount; ++code) expect_fits({request_of(Kind(code), {4})});
}

}  // namespace
}  // namespace hvd::negotiate
