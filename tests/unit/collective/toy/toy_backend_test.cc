// A backend that is registered gets the works that its table names, and no others.
#include "tests/unit/collective/toy/toy_backend.h"

#include <gmock/gmock.h>

#include <array>

#include "collective/backends/data_plane.h"

namespace hvd::collective {
namespace {

using ::testing::ElementsAre;

constexpr int kRanks = 2;
constexpr std::array<int, kRanks> kLocalRanks = {0, 1};

std::vector<MakeBackend> with_toy() {
  std::vector<MakeBackend> makers = {toy::make_toy};  // the one line
  const auto registered = registered_backends();
  makers.insert(makers.end(), registered.begin(), registered.end());
  return makers;
}

// One rank with its part of the segment; nothing blocks, so one thread drives all of them.
struct Rank {
  Rank(shm::Job& job)
      : link(job, job.base() + job.channel_pool_offset(), kRanks, job.rank(), kLocalRanks.data()),
        plane(make_backends({link, nullptr}, with_toy())) {}

  template <typename T>
  void reduce(Work& work, std::vector<T>& data, DType dtype) {
    work.reset(WorkKind::kReduce);
    collective::Run& run = work.next_run();
    run.numeric = {};
    run.numeric.dtype = run.numeric.slot_dtype = dtype;
    run.add(data.data(), data.data(), data.size());
    ASSERT_TRUE(plane.add(work).is_ok());
  }

  shared_memory::Link link;
  DataPlane plane;
  std::vector<Work*> done;
};

class ToyBackendTest : public ::testing::Test {
 protected:
  void SetUp() override {
    toy::journal().clear();
    shm::JobOptions options;
    options.job_id = "toy";
    options.arena_bytes = 1 << 20;
    auto jobs = shm::Job::in_process(kRanks, options);
    ASSERT_TRUE(jobs) << jobs.status().message();
    jobs_ = std::move(*jobs);
    for (const auto& job : jobs_) ranks_.push_back(std::make_unique<Rank>(*job));
  }

  void run_all() {
    for (int turn = 0; turn < 1000; ++turn) {
      for (const auto& rank : ranks_) (void)rank->plane.advance(rank->done);
    }
    for (const auto& rank : ranks_) EXPECT_TRUE(rank->plane.is_idle());
  }

  std::vector<std::unique_ptr<shm::Job>> jobs_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

TEST_F(ToyBackendTest, GetsTheWorksOfItsTableAndTheOthersGoPastIt) {
  std::vector<float> floats[kRanks] = {{1, 2, 3}, {10, 20, 30}};
  std::vector<int32_t> integers[kRanks] = {{1, 2}, {3, 4}};
  Work first[kRanks], second[kRanks];
  for (size_t r = 0; r < kRanks; ++r) {
    ranks_[r]->reduce(first[r], floats[r], DType::kFloat32);
    ranks_[r]->reduce(second[r], integers[r], DType::kInt32);
  }

  run_all();

  for (size_t r = 0; r < kRanks; ++r) {
    EXPECT_THAT(floats[r], ElementsAre(11, 22, 33));
    EXPECT_THAT(integers[r], ElementsAre(4, 6));
    EXPECT_THAT(ranks_[r]->done, ElementsAre(&first[r], &second[r]));
  }
  EXPECT_THAT(toy::journal(), ElementsAre("reduce of 3 elements", "reduce of 3 elements"));
}

TEST_F(ToyBackendTest, IsNamedWhereARouteIsExplained) {
  std::vector<int32_t> integers = {1};
  Work work;
  work.reset(WorkKind::kReduce);
  collective::Run& run = work.next_run();
  run.numeric.dtype = run.numeric.slot_dtype = DType::kInt32;
  run.add(integers.data(), integers.data(), 1);

  EXPECT_EQ(ranks_[0]->plane.explain(work),
            "shared_memory: reduce, 4 bytes of int32, host memory; toy does not have its dtypes "
            "and operations");
}

TEST_F(ToyBackendTest, AWorkThatNobodyTakesIsRefusedWithTheReason) {
  Work work;
  work.reset(WorkKind::kFence);
  work.device = device_of(0);

  const Status status = ranks_[0]->plane.add(work);

  EXPECT_EQ(status.code(), StatusCode::kPreconditionError);
  EXPECT_EQ(status.message(),
            "no backend: fence, 0 bytes, GPU memory; toy has no fence; shared_memory does not "
            "reach GPU memory; gpu has no fence");
}

}  // namespace
}  // namespace hvd::collective
