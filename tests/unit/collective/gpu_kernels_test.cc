// What our kernels for GPUs compute, run here from the same source, and when they are used.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "reduce/kernels.h"
#include "tests/unit/collective/gpu_plans.h"

namespace hvd::collective::gpu {
namespace {

using ::testing::HasSubstr;
using Op = Reduction::Op;

std::byte* memory_at(uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

template <class Kernel, class In>
std::vector<typename Kernel::Out> run_kernel(const std::vector<In>& in, const Scale& scale) {
  std::vector<typename Kernel::Out> out(in.size());
  // As the threads of a grid do it: every third element each.
  for (uint64_t first = 0; first < 3; ++first)
    run_segment(Kernel(scale), {in.data(), out.data(), in.size()}, first, 3);
  return out;
}

std::vector<uint16_t> all_halves() {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  return all;
}

std::vector<float> many_floats() {
  std::vector<float> all;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 65521) {
    const auto word = static_cast<uint32_t>(bits);
    float value;
    std::memcpy(&value, &word, sizeof value);
    all.push_back(value);
  }
  return all;
}

template <class Kernel>
void expect_scaled_as_on_the_host(DType dtype, const std::vector<typename Kernel::In>& values) {
  for (const Scale& scale : {Scale{0.5, 1}, Scale{1.0, 3}, Scale{-2.5, 7}, Scale{1.0, 4}}) {
    std::vector<typename Kernel::In> expected(values.size());
    kernels().scale(dtype, expected.data(), values.data(), values.size(), scale);
    const auto got = run_kernel<Kernel>(values, scale);
    EXPECT_EQ(0, std::memcmp(got.data(), expected.data(), got.size() * sizeof got[0]))
        << dtype_name(dtype) << " * " << scale.factor << " / " << scale.divisor;
  }
}

TEST(GpuKernels, ScaleGivesTheBitsOfTheHost) {
  expect_scaled_as_on_the_host<ScaleHalf<Float16Bits>>(DType::kFloat16, all_halves());
  expect_scaled_as_on_the_host<ScaleHalf<Bfloat16Bits>>(DType::kBfloat16, all_halves());
  expect_scaled_as_on_the_host<ScaleFloat<float>>(DType::kFloat32, {1.0f, -3.5f, 1e-39f, 7e37f});
  expect_scaled_as_on_the_host<ScaleFloat<double>>(DType::kFloat64, {1.0, -3.5, 1e-310, 7e300});
  expect_scaled_as_on_the_host<ScaleInteger<int32_t>>(DType::kInt32, {7, -7, INT32_MAX, INT32_MIN});
  expect_scaled_as_on_the_host<ScaleInteger<int64_t>>(DType::kInt64, {7, -7, INT64_MAX, INT64_MIN});
  expect_scaled_as_on_the_host<ScaleInteger<uint8_t>>(DType::kUint8, {0, 1, 128, 255});
  expect_scaled_as_on_the_host<ScaleInteger<int8_t>>(DType::kInt8, {0, 1, -128, 127});
}

template <class Bits>
void expect_converted_as_on_the_host(DType narrow_type) {
  const Scale scale{0.75, 2};
  const std::vector<float> values = many_floats();
  std::vector<uint16_t> narrow(values.size());
  kernels().narrow(narrow_type, narrow.data(), values.data(), values.size(), scale);
  EXPECT_EQ(run_kernel<Narrow<Bits>>(values, scale), narrow);
  std::vector<float> wide(65536);
  kernels().widen(narrow_type, wide.data(), all_halves().data(), wide.size(), scale);
  const auto got = run_kernel<Widen<Bits>>(all_halves(), scale);
  EXPECT_EQ(0, std::memcmp(got.data(), wide.data(), wide.size() * sizeof(float)));
}

TEST(GpuKernels, ConversionsGiveTheBitsOfTheHost) {
  expect_converted_as_on_the_host<Float16Bits>(DType::kFloat16);
  expect_converted_as_on_the_host<Bfloat16Bits>(DType::kBfloat16);
}

TEST(GpuKernels, TheTextHasEveryEntryAndIsForOldDrivers) {
  const std::string text = kKernelText;
  EXPECT_THAT(text, HasSubstr(".version 6.3"));
  EXPECT_THAT(text, HasSubstr(".target sm_52"));
#define HVD_EXPECT_ENTRY(name, ...) EXPECT_THAT(text, HasSubstr(".visible .entry " #name "("));
  HVD_GPU_KERNELS(HVD_EXPECT_ENTRY)
}

Work sum_of(const Numeric& n, const std::vector<uint64_t>& counts) {
  Work work;
  work.reset(WorkKind::kReduce);
  Run& run = work.next_run();
  run.numeric = n;
  uintptr_t address = 0x100000;
  for (const uint64_t count : counts) {
    run.add(memory_at(address), memory_at(address), count);
    address += count * 8;
  }
  return work;
}

TEST(LaunchPlan, SmallPiecesTravelTogetherLargeOnesAlone) {
  const uint64_t large = kPackedPieceBytes / 4 + 1;
  const Work work = sum_of(numeric_of(DType::kFloat32, ReduceOp::kSum), {10, large, 7});

  const LaunchPlan sizes = plan_launch(work, {2, 0}, kAllAbilities, nullptr);
  const LaunchPlan plan = plan_launch(work, {2, 0}, kAllAbilities, memory_at(0x900000));

  EXPECT_EQ(sizes.scratch_bytes, plan.scratch_bytes);
  ASSERT_EQ(plan.calls.size(), 2u);
  EXPECT_EQ(plan.calls[0].count, large);
  EXPECT_EQ(plan.calls[1].in, memory_at(0x900000));
  EXPECT_EQ(plan.calls[1].count, 12u + 7 + 1);  // each piece begins at 16 bytes
  ASSERT_EQ(plan.before.size(), 1u);
  EXPECT_EQ(plan.before[0].kernel, KernelId::hvd_copy_4);
  EXPECT_EQ(plan.before[0].segments.size(), 2u);
  ASSERT_EQ(plan.after.size(), 1u);
  EXPECT_EQ(plan.after[0].segments[1].in, memory_at(0x900000) + 48);
}

TEST(LaunchPlan, NothingIsCopiedWhereOneMemberDoesNotPack) {
  const Work work = sum_of(numeric_of(DType::kFloat32, ReduceOp::kSum), {10, 7});

  const LaunchPlan plan = plan_launch(work, {2, 0}, {.has_kernels = true, .packs = false}, nullptr);

  EXPECT_EQ(plan.scratch_bytes, 0u);
  EXPECT_EQ(plan.calls.size(), 2u);
  EXPECT_TRUE(plan.before.empty());
}

TEST(LaunchPlan, FactorsThatNcclLacksAreAppliedInPlace) {
  const Work work =
      sum_of(numeric_of(DType::kInt32, ReduceOp::kSum, {2.0, 1}, {1.0, 3}), {kPackedBytes});

  EXPECT_FALSE(can_launch(work, 2, {}));
  ASSERT_TRUE(can_launch(work, 2, kAllAbilities));
  const LaunchPlan plan = plan_launch(work, {2, 0}, kAllAbilities, nullptr);

  EXPECT_EQ(plan.scratch_bytes, 0u);
  ASSERT_EQ(plan.before.size(), 1u);
  EXPECT_EQ(plan.before[0].kernel, KernelId::hvd_scale_int32);
  EXPECT_EQ(plan.before[0].scale, (Scale{2.0, 1}));
  ASSERT_EQ(plan.after.size(), 1u);
  EXPECT_EQ(plan.after[0].scale, (Scale{1.0, 3}));
  EXPECT_EQ(plan.calls[0].reduction.op, Op::kSum);
}

TEST(LaunchPlan, AWireTypeIsConvertedOnTheWay) {
  Numeric wire = numeric_of(DType::kFloat32, ReduceOp::kSum, {}, {1.0, 3});
  wire.slot_dtype = DType::kBfloat16;
  const Work work = sum_of(wire, {1000});

  const LaunchPlan plan = plan_launch(work, {3, 0}, kAllAbilities, memory_at(0x900000));

  EXPECT_EQ(plan.scratch_bytes, 2048u);
  ASSERT_EQ(plan.calls.size(), 1u);
  EXPECT_EQ(plan.calls[0].reduction.dtype, 9);
  EXPECT_EQ(plan.before[0].kernel, KernelId::hvd_narrow_bfloat16);
  EXPECT_EQ(plan.before[0].scale, (Scale{1.0, 3}));  // before the sum, which then cannot overflow
  EXPECT_EQ(plan.after[0].kernel, KernelId::hvd_widen_bfloat16);
}

TEST(LaunchPlan, ShortNumbersAreDividedByWhatTheyCanExpress) {
  const Work by_three =
      sum_of(numeric_of(DType::kBfloat16, ReduceOp::kSum, {}, {1.0, 3}), {kPackedBytes});
  const Work by_four =
      sum_of(numeric_of(DType::kBfloat16, ReduceOp::kSum, {}, {1.0, 4}), {kPackedBytes});

  EXPECT_EQ(plan_launch(by_three, {3, 0}, kAllAbilities, nullptr).before.size(), 1u);
  EXPECT_EQ(plan_launch(by_three, {3, 0}, {}, nullptr).calls[0].reduction.op, Op::kAverage);
  const LaunchPlan plain = plan_launch(by_four, {4, 0}, kAllAbilities, nullptr);
  EXPECT_TRUE(plain.before.empty());
  EXPECT_EQ(plain.calls[0].reduction.op, Op::kAverage);
}

TEST(LaunchPlan, AMemberThatHasJoinedGivesZerosAndDropsTheResult) {
  Work work = sum_of(numeric_of(DType::kFloat32, ReduceOp::kSum), {10, 7});
  for (Piece& piece : work.runs[0].pieces) {
    piece.in = nullptr;
    piece.out = nullptr;
  }

  const LaunchPlan plan = plan_launch(work, {2, 0}, kAllAbilities, memory_at(0x900000));

  EXPECT_EQ(plan.zeros.size(), 2u);
  EXPECT_EQ(plan.zeros[1].bytes, 28u);
  EXPECT_TRUE(plan.before.empty());
  EXPECT_TRUE(plan.after.empty());
  EXPECT_EQ(plan.calls.size(), 1u);
}

}  // namespace
}  // namespace hvd::collective::gpu
