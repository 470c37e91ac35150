#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "negotiate/validate.h"
#include "tests/unit/negotiate/requests.h"

namespace hvd::negotiate {
namespace {

using test::alltoall;
using test::kJoined;
using test::request_of;
using test::tensors_of;
using test::validate_all;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wire::Kind;
using wire::Request;

Plan plan_of(const std::vector<std::optional<Request>>& requests) {
  Result<Plan> result = validate_all(requests);
  EXPECT_TRUE(result.is_ok()) << result.status().message();
  return result.is_ok() ? *std::move(result) : Plan{};
}

TEST(Plan, AllreduceHasOneEntryPerTensorAndNoRows) {
  const Request request =
      tensors_of(Kind::kAllreduce, {{.name = "a", .shape = {4, 3, 2}}, {.name = "b", .shape = {}}});

  const Plan plan = plan_of({request, kJoined, request});

  ASSERT_EQ(plan.tensors.size(), 2u);
  EXPECT_EQ(plan.tensors[0].row_elements, 6u);
  EXPECT_EQ(plan.tensors[1].row_elements, 1u);
  EXPECT_THAT(plan.tensors[0].rows, IsEmpty());
  EXPECT_THAT(plan.tensors[0].splits, IsEmpty());
}

TEST(Plan, AllgatherRowsAreTheFirstDimensionsInSetRankOrder) {
  const Plan plan =
      plan_of({request_of(Kind::kAllgather, {2, 5}), request_of(Kind::kAllgather, {0, 5}),
               request_of(Kind::kAllgather, {7, 5})});

  ASSERT_EQ(plan.tensors.size(), 1u);
  EXPECT_THAT(plan.tensors[0].rows, ElementsAre(2, 0, 7));
  EXPECT_EQ(plan.tensors[0].row_elements, 5u);
}

TEST(Plan, GroupedAllgatherHasRowsForEachTensor) {
  const auto of = [](int64_t a, int64_t b) {
    return tensors_of(Kind::kAllgather,
                      {{.name = "a", .shape = {a}}, {.name = "b", .shape = {b, 2}}});
  };

  const Plan plan = plan_of({of(1, 2), of(3, 4)});

  ASSERT_EQ(plan.tensors.size(), 2u);
  EXPECT_THAT(plan.tensors[0].rows, ElementsAre(1, 3));
  EXPECT_THAT(plan.tensors[1].rows, ElementsAre(2, 4));
}

TEST(Plan, ReducescatterGivesTheRemainderToTheFirstRanks) {
  const struct {
    int64_t rows;
    std::vector<int64_t> expected;
  } cases[] = {
      {0, {0, 0, 0, 0}},
      {3, {1, 1, 1, 0}},
      {4, {1, 1, 1, 1}},
      {10, {3, 3, 2, 2}},
      {4001, {1001, 1000, 1000, 1000}},
  };

  for (const auto& c : cases) {
    const Request request = request_of(Kind::kReducescatter, {c.rows, 3});
    const Plan plan = plan_of({request, request, request, request});
    ASSERT_EQ(plan.tensors.size(), 1u);
    EXPECT_EQ(plan.tensors[0].rows, c.expected);
    EXPECT_EQ(plan.tensors[0].row_elements, 3u);
  }
}

TEST(Plan, AlltoallSplitsAreAMatrixFromSenderToReceiver) {
  const Plan plan =
      plan_of({alltoall({6, 2}, {}), alltoall({5, 2}, {0, 4, 1}), alltoall({9, 2}, {1, 1, 1})});

  ASSERT_EQ(plan.tensors.size(), 1u);
  EXPECT_THAT(plan.tensors[0].splits, ElementsAre(2, 2, 2, 0, 4, 1, 1, 1, 1));
  EXPECT_EQ(plan.tensors[0].row_elements, 2u);
}

TEST(Plan, EmptyTensorsHaveEmptyRowsAndSplits) {
  const Plan plan = plan_of({alltoall({0, 0}, {}), alltoall({0, 0}, {0, 0})});

  ASSERT_EQ(plan.tensors.size(), 1u);
  EXPECT_THAT(plan.tensors[0].splits, ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(plan.tensors[0].row_elements, 0u);
}

TEST(Plan, OperationsWithoutTensorsHaveAnEmptyPlan) {
  const Request barrier = test::with_ranks(Kind::kBarrier, {});

  EXPECT_THAT(plan_of({barrier, barrier}).tensors, IsEmpty());
}

}  // namespace
}  // namespace hvd::negotiate
