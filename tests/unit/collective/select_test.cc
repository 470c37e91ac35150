#include "collective/select.h"

#include <gtest/gtest.h>

namespace hvd::collective {
namespace {

const Capabilities kEverything = {{.kind = WorkKind::kReduce}, {.kind = WorkKind::kExchange}};
const Capabilities kLargeFloats = {{.kind = WorkKind::kReduce,
                                    .dtypes = {DType::kFloat32, DType::kFloat64},
                                    .ops = {ReduceOp::kSum},
                                    .device = DeviceKind::kHost,
                                    .least_bytes = 1000}};
const Capabilities kGpu = {{.kind = WorkKind::kReduce,
                            .dtypes = kAllDTypes,
                            .ops = kAllReduceOps,
                            .device = DeviceKind::kGpu}};

const Candidate kCandidates[] = {
    {"gpu", &kGpu}, {"floats", &kLargeFloats}, {"everything", &kEverything}};

WorkTraits sum_of(DTypes dtypes, uint64_t bytes) {
  return {.kind = WorkKind::kReduce,
          .dtypes = dtypes,
          .ops = {ReduceOp::kSum},
          .bytes = bytes,
          .device = {}};
}

std::string_view chosen(const WorkTraits& work) {
  const auto place = select(work, kCandidates);
  return place ? kCandidates[*place].name : "none";
}

TEST(Select, TakesTheFirstBackendThatHasARowForTheWork) {
  EXPECT_EQ(chosen(sum_of({DType::kFloat32}, 1000)), "floats");
  EXPECT_EQ(chosen(sum_of({DType::kFloat32}, 999)), "everything");
  EXPECT_EQ(chosen(sum_of({DType::kInt32}, 1000)), "everything");
}

TEST(Select, WantsEveryDtypeAndOperationOfAWorkInOneRow) {
  EXPECT_EQ(chosen(sum_of({DType::kFloat32, DType::kFloat64}, 2000)), "floats");
  EXPECT_EQ(chosen(sum_of({DType::kFloat32, DType::kInt8}, 2000)), "everything");
  WorkTraits product = sum_of({DType::kFloat32}, 2000);
  product.ops = {ReduceOp::kProduct};
  EXPECT_EQ(chosen(product), "everything");
}

TEST(Select, KeepsHostAndDeviceMemoryApart) {
  WorkTraits work = sum_of({DType::kInt32}, 4);
  work.device = device_of(0);
  EXPECT_EQ(chosen(work), "gpu");
  work.kind = WorkKind::kExchange;
  EXPECT_EQ(chosen(work), "none");
}

TEST(ExplainRoute, SaysWhatTheWorkIsAndWhyOthersDoNotTakeIt) {
  EXPECT_EQ(explain_route(sum_of({DType::kFloat32}, 8), kCandidates),
            "everything: reduce, 8 bytes of float32, host memory; gpu does not reach host memory; "
            "floats takes 1000 bytes or more");
  WorkTraits gather{
      .kind = WorkKind::kExchange, .dtypes = {}, .ops = {}, .bytes = 16, .device = device_of(1)};
  EXPECT_EQ(explain_route(gather, kCandidates),
            "no backend: exchange, 16 bytes, GPU memory; gpu has no exchange; floats has no "
            "exchange; everything does not reach GPU memory");
}

TEST(TraitsOf, CountsElementsAsTheyTravel) {
  Work work;
  work.reset(WorkKind::kReduce);
  collective::Run& run = work.next_run();
  run.numeric.dtype = DType::kFloat32;
  run.numeric.slot_dtype = DType::kFloat16;
  run.numeric.op = ReduceOp::kMax;
  run.add(nullptr, nullptr, 10);

  const WorkTraits traits = traits_of(work);

  EXPECT_EQ(traits.bytes, 20u);
  EXPECT_TRUE(traits.dtypes == DTypes{DType::kFloat16});
  EXPECT_TRUE(traits.ops == ReduceOps{ReduceOp::kMax});
}

}  // namespace
}  // namespace hvd::collective
