// How works in device memory become calls of NCCL, or parts that go through host memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/gpu/nccl_calls.h"
#include "collective/gpu/staging_parts.h"

namespace hvd::collective::gpu {
namespace {

using ::testing::ElementsAre;
using Op = Reduction::Op;

// Addresses that nobody follows.
std::byte* at(uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

Numeric numeric(DType dtype, ReduceOp op, Scale pre = {}, Scale post = {}) {
  return {.dtype = dtype, .slot_dtype = dtype, .op = op, .pre = pre, .post = post};
}

Work reduction(const Numeric& n, uint64_t count) {
  Work work;
  work.reset(WorkKind::kReduce);
  Run& run = work.next_run();
  run.numeric = n;
  run.add(at(0x1000), at(0x1000), count);
  return work;
}

TEST(NcclCalls, AverageIsThatOfNccl) {
  const auto found = reduction_of(numeric(DType::kBfloat16, ReduceOp::kSum, {}, {1.0, 4}), 4);

  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->op, Op::kAverage);
  EXPECT_EQ(found->dtype, 9);
}

TEST(NcclCalls, FactorsOfFloatsNeedNoPassOfTheirOwn) {
  const auto found = reduction_of(numeric(DType::kFloat32, ReduceOp::kSum, {0.5, 1}, {3.0, 4}), 4);

  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->op, Op::kSum);
  EXPECT_DOUBLE_EQ(found->factor, 0.375);
}

TEST(NcclCalls, WhatNcclLacksGoesThroughTheHost) {
  Numeric wire = numeric(DType::kFloat32, ReduceOp::kSum);
  wire.slot_dtype = DType::kFloat16;

  EXPECT_FALSE(reduction_of(wire, 2));
  EXPECT_FALSE(reduction_of(numeric(DType::kInt16, ReduceOp::kSum), 2));
  EXPECT_FALSE(reduction_of(numeric(DType::kInt32, ReduceOp::kSum, {2.0, 1}), 2));
  EXPECT_FALSE(reduction_of(numeric(DType::kFloat32, ReduceOp::kMax, {2.0, 1}), 2));
  Work adasum = reduction(numeric(DType::kFloat32, ReduceOp::kSum), 4);
  adasum.kind = WorkKind::kAdasum;
  EXPECT_FALSE(can_run(adasum, 2));
}

TEST(NcclCalls, TruthIsAddedByMax) {
  EXPECT_EQ(reduction_of(numeric(DType::kBool, ReduceOp::kSum), 2)->op, Op::kMax);
  EXPECT_EQ(reduction_of(numeric(DType::kBool, ReduceOp::kProduct), 2)->op, Op::kMin);
}

Exchange gather(std::vector<uint64_t> bytes) {
  Exchange x;
  x.same_block_for_all = true;
  x.in = at(0x100000);
  x.out = at(0x200000);
  x.send_offset = {0};
  x.send_bytes = {bytes[0]};
  uint64_t offset = 0;
  for (const uint64_t block : bytes) {
    x.receive_offset.push_back(offset);
    x.receive_bytes.push_back(block);
    offset += block;
  }
  return x;
}

std::vector<CallKind> kinds_of(const Exchange& x) {
  Work work;
  work.reset(WorkKind::kExchange);
  work.exchanges.push_back(x);
  std::vector<CallKind> kinds;
  for (const Call& call : calls_of(work, 3, 0)) kinds.push_back(call.kind);
  return kinds;
}

TEST(NcclCalls, EvenBlocksAreGatheredInOneCallOthersByBroadcasts) {
  EXPECT_THAT(kinds_of(gather({8, 8, 8})), ElementsAre(CallKind::kAllGather));
  EXPECT_THAT(kinds_of(gather({8, 0, 4})), ElementsAre(CallKind::kBroadcast, CallKind::kBroadcast));
}

TEST(NcclCalls, AnInputInItsOwnPlaceIsNotCopied) {
  Exchange x = gather({8, 8, 8});
  EXPECT_FALSE(must_copy_input(x, 1));
  x.in = x.out + 8;
  EXPECT_FALSE(must_copy_input(x, 1));
  x.in = x.out + 4;
  EXPECT_TRUE(must_copy_input(x, 1));
}

TEST(StagingParts, AReductionIsCutAndCoversEveryElementOnce) {
  const uint64_t count = kPartBytes / 4 * 2 + 5;
  const Work work = reduction(numeric(DType::kFloat32, ReduceOp::kSum), count);

  uint64_t copied = 0;
  for (uint64_t i = 0; i < part_count(work); ++i) {
    Part part;
    Work host;
    make_part(work, i, at(0x900000), part, host);
    ASSERT_EQ(part.in.size(), 1u);
    EXPECT_EQ(part.in[0].device, at(0x1000) + copied);
    EXPECT_LE(part.bytes, largest_part(work));
    EXPECT_EQ(host.runs[0].count * 4, part.in[0].bytes);
    copied += part.in[0].bytes;
  }

  EXPECT_EQ(part_count(work), 3u);
  EXPECT_EQ(copied, count * 4);
}

TEST(StagingParts, AnExchangeHasRoomForInputAndOutput) {
  Work work;
  work.reset(WorkKind::kExchange);
  work.exchanges.push_back(gather({8, 0, 100}));

  Part part;
  Work host;
  make_part(work, 0, at(0x900000), part, host);

  EXPECT_EQ(part_count(work), 1u);
  ASSERT_EQ(part.out.size(), 1u);
  EXPECT_EQ(part.out[0].bytes, 108u);
  EXPECT_EQ(host.exchanges[0].in, at(0x900000));
  EXPECT_EQ(host.exchanges[0].out, at(0x900000) + 64);
}

}  // namespace
}  // namespace hvd::collective::gpu
