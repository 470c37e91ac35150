// Reductions in levels: who meets whom, and that the stages together give what one stage gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "collective/gpu/levels.h"
#include "collective/gpu/staging_parts.h"
#include "tests/unit/collective/gpu_plans.h"

namespace hvd::collective::gpu {
namespace {

using Op = Reduction::Op;

constexpr int kInt32 = 2, kUint8 = 1, kFloat32 = 7;  // as NCCL counts them

Work reduction(const Numeric& n, std::byte* at, uint64_t count) {
  Work work;
  work.reset(WorkKind::kReduce);
  Run& run = work.next_run();
  run.numeric = n;
  run.add(at, at, count);
  return work;
}

LaunchPlan plan_in(Levels levels, const Numeric& n, const Abilities& abilities = kAllAbilities) {
  std::byte* const at = reinterpret_cast<std::byte*>(uintptr_t{0x100000});
  return plan_launch(reduction(n, at, uint64_t{1} << 20), {6, 0, levels}, abilities, nullptr);
}

// Members of three hosts, whose calls are carried out in memory.
class World {
 public:
  static constexpr int kSize = 6;
  const HostMembers hosts = {{0, 3}, {1, 4}, {2, 5}};

  World(uint64_t count, Levels levels) {
    for (int me = 0; me < kSize; ++me) {
      std::vector<int32_t>& mine = memory_.emplace_back(count);
      std::iota(mine.begin(), mine.end(), 1000 * me);
      auto* at = reinterpret_cast<std::byte*>(mine.data());
      const Call whole{CallKind::kAllReduce, at, at, count, {kInt32, Op::kSum, 1.0}};
      stages_.push_back(stages_of({whole}, levels, layout_of(hosts, me)));
    }
  }

  void run() {
    for (size_t stage = 0; stage < stages_[0].size(); ++stage) {
      if (stages_[0][stage].reach == Reach::kHostMemory) {
        run_middle(stage);
        continue;
      }
      for (const std::vector<int>& members : groups(stages_[0][stage].reach)) {
        for (size_t call = 0; call < stages_[0][stage].calls.size(); ++call)
          run_call(members, stage, call);
      }
    }
  }

  void expect_sums() const {
    for (const auto& mine : memory_) {
      for (size_t i = 0; i < mine.size(); ++i)
        ASSERT_EQ(mine[i], 15000 + static_cast<int32_t>(i) * kSize) << "element " << i;
    }
  }
  const std::vector<Stage>& stages() const { return stages_[0]; }

 private:
  std::vector<std::vector<int>> groups(Reach reach) const {
    if (reach == Reach::kHost) return hosts;
    return {{0, 1, 2}, {3, 4, 5}};
  }

  void run_call(const std::vector<int>& members, size_t stage, size_t number) {
    const auto call_of = [&](size_t i) -> const Call& {
      return stages_[static_cast<size_t>(members[i])][stage].calls[number];
    };
    const Call& first = call_of(0);
    const bool gathers = first.kind == CallKind::kAllGather;
    const bool scatters = first.kind == CallKind::kReduceScatter;
    const uint64_t each = gathers ? first.count / 4 : first.count;
    std::vector<int32_t> all(each * (gathers || scatters ? members.size() : 1));
    for (size_t i = 0; i < members.size(); ++i) {
      const auto* in = reinterpret_cast<const int32_t*>(call_of(i).in);
      if (gathers) std::copy_n(in, each, all.begin() + static_cast<std::ptrdiff_t>(i * each));
      for (size_t k = 0; k < all.size() && !gathers; ++k) all[k] += in[k];
    }
    for (size_t i = 0; i < members.size(); ++i) {
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(scatters ? i * each : 0);
      std::copy_n(from, scatters ? each : all.size(), reinterpret_cast<int32_t*>(call_of(i).out));
    }
  }

  void run_middle(size_t stage) {
    std::vector<Work> works(kSize);
    for (size_t me = 0; me < kSize; ++me)
      make_middle(stages_[me][stage].calls, layout_of(hosts, static_cast<int>(me)), works[me]);
    const Run& like = works[0].runs[0];
    for (size_t p = 0; p < like.pieces.size(); ++p) {
      std::vector<int32_t> sum(like.pieces[p].count);
      for (const Work& work : works) {
        ASSERT_EQ(work.runs[0].pieces[p].count, sum.size());  // agreed
        const auto* in = reinterpret_cast<const int32_t*>(work.runs[0].pieces[p].in);
        for (size_t i = 0; i < sum.size() && in != nullptr; ++i) sum[i] += in[i];
      }
      for (const Work& work : works) {
        auto* out = reinterpret_cast<int32_t*>(work.runs[0].pieces[p].out);
        if (out != nullptr) std::copy(sum.begin(), sum.end(), out);
      }
    }
  }

  std::vector<std::vector<int32_t>> memory_;
  std::vector<std::vector<Stage>> stages_;
};

TEST(GpuLevels, StagesTogetherGiveTheSumOfAll) {
  for (const Levels levels : {Levels::kHierarchical, Levels::kTorus}) {
    for (const uint64_t count : {1u, 7u, 8u, 9u, 1000u, 1'400'003u}) {
      SCOPED_TRACE(count);
      World world(count, levels);
      world.run();
      world.expect_sums();
    }
  }
}

TEST(GpuLevels, OnlySharesTravelBetweenHosts) {
  const World world(1003, Levels::kTorus);

  ASSERT_EQ(world.stages().size(), 3u);
  const auto& between = world.stages()[1];
  EXPECT_EQ(between.reach, Reach::kAcross);
  ASSERT_EQ(between.calls.size(), 2u);
  EXPECT_EQ(between.calls[0].count, 500u);  // whole 16 bytes
  EXPECT_EQ(between.calls[1].count, 3u);
}

TEST(GpuLevels, EachPartThatGoesThroughTheHostHasWorkForEveryMember) {
  std::byte* const at = reinterpret_cast<std::byte*>(uintptr_t{0x100000});
  const Call whole{CallKind::kAllReduce, at, at, kPartBytes, {kInt32, Op::kSum, 1.0}};
  Work middle;

  make_middle({whole}, {.host_size = 2, .place = 1, .host_count = 2}, middle);

  ASSERT_EQ(part_count(middle), 4u);
  for (uint64_t i = 0; i < 4; ++i) {
    Part part;
    Work host;
    make_part(middle, i, nullptr, part, host);
    ASSERT_EQ(part.in.size(), 1u);
    EXPECT_EQ(part.in[0].bytes, kPartBytes / 2);
  }
}

TEST(GpuLevels, FewElementsNeedNoShares) {
  const World world(3, Levels::kHierarchical);

  ASSERT_EQ(world.stages().size(), 2u);
  EXPECT_EQ(world.stages()[0].calls[0].kind, CallKind::kAllReduce);
  EXPECT_EQ(world.stages()[1].reach, Reach::kHostMemory);
}

TEST(GpuLevels, WithoutLevelsThereIsOneStage) {
  const auto stages = stages_of({Call{}}, Levels::kNone, {});

  ASSERT_EQ(stages.size(), 1u);
  EXPECT_EQ(stages[0].reach, Reach::kAll);
  EXPECT_EQ(stages[0].activity, "NCCL");
}

TEST(GpuLevels, MembersWithTheSamePlaceMeetByTheFirstHost) {
  const HostMembers hosts = {{0, 2}, {1, 3}};

  const Layout last = layout_of(hosts, 3);

  EXPECT_EQ(last.host_leader, 1);
  EXPECT_EQ(last.across_leader, 2);
  EXPECT_EQ(last.place, 1);
  EXPECT_EQ(last.host, 1);
  EXPECT_EQ(last.host_size, 2);
  EXPECT_EQ(last.host_count, 2);
}

TEST(GpuLevels, AveragesOfFloatsAreSumsWithAFactorOfTheFirstStage) {
  const auto average = numeric_of(DType::kFloat32, ReduceOp::kSum, {}, {1.0, 6});
  EXPECT_EQ(plan_in(Levels::kNone, average).calls[0].reduction.op, Op::kAverage);

  const LaunchPlan plan = plan_in(Levels::kTorus, average);

  ASSERT_EQ(plan.calls.size(), 1u);
  EXPECT_EQ(plan.calls[0].reduction, (Reduction{kFloat32, Op::kSum, 1.0 / 6}));
  const auto stages = stages_of(plan.calls, Levels::kTorus, {.host_size = 2, .host_count = 3});
  EXPECT_EQ(stages[0].calls[0].reduction.factor, 1.0 / 6);
  EXPECT_EQ(stages[1].calls[0].reduction.factor, 1.0);
}

TEST(GpuLevels, AveragesOfIntegersAreDividedAtTheEnd) {
  const auto average = numeric_of(DType::kInt32, ReduceOp::kSum, {}, {1.0, 6});

  const LaunchPlan plan = plan_in(Levels::kTorus, average);

  EXPECT_EQ(plan.calls[0].reduction, (Reduction{kInt32, Op::kSum, 1.0}));
  ASSERT_EQ(plan.after.size(), 1u);
  EXPECT_EQ(plan.after[0].scale, (Scale{1.0, 6}));
  const Work work = reduction(average, nullptr, 100);
  EXPECT_TRUE(can_launch(work, 6, {}));  // in one stage, by NCCL
  EXPECT_FALSE(can_launch(work, 6, {}, Levels::kTorus));
}

TEST(GpuLevels, WhatZerosWouldSpoilIsNoWorkForOurMiddle) {
  const auto can = [](DType dtype, ReduceOp op, Levels levels) {
    return can_launch(reduction(numeric_of(dtype, op), nullptr, 100), 6, kAllAbilities, levels);
  };

  EXPECT_FALSE(can(DType::kFloat32, ReduceOp::kMin, Levels::kHierarchical));
  EXPECT_FALSE(can(DType::kFloat32, ReduceOp::kMax, Levels::kHierarchical));
  EXPECT_FALSE(can(DType::kInt32, ReduceOp::kProduct, Levels::kHierarchical));
  EXPECT_TRUE(can(DType::kBool, ReduceOp::kSum, Levels::kHierarchical));
  EXPECT_TRUE(can(DType::kFloat32, ReduceOp::kMin, Levels::kTorus));
  EXPECT_TRUE(zero_is_neutral({kUint8, Op::kMax, 1.0}));
}

TEST(GpuLevels, OnlyReductionsHaveLevels) {
  Work work;
  work.reset(WorkKind::kExchange);

  EXPECT_TRUE(can_launch(work, 6, kAllAbilities));
  EXPECT_FALSE(can_launch(work, 6, kAllAbilities, Levels::kTorus));
}

}  // namespace
}  // namespace hvd::collective::gpu
