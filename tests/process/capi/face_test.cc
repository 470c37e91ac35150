// The C++ face in a job of several processes: what a trainer written in C++ sees.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "horovod/hvd.hpp"
#include "tests/support/process_ranks.h"

namespace hvd::testing {
namespace {

ProcessOptions session_by_function() {
  ProcessOptions options;
  options.init = ProcessOptions::Init::kByFunction;
  return options;
}

horovod::SessionOptions options_of(const RankProcess& rank) {
  horovod::SessionOptions options;
  options.topology = {rank.rank(), rank.size(), rank.rank(), rank.size(), 0, 1};
  options.job_id = rank.job_id();
  return options;
}

horovod::Options named(const char* name, horovod::ReduceOp op = horovod::ReduceOp::kSum) {
  horovod::Options options;
  options.name = name;
  options.op = op;
  return options;
}

class CapiFace : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, CapiFace, ::testing::Values(1, 3));

TEST_P(CapiFace, EveryCollectiveReturnsItsValues) {
  run_processes(
      GetParam(),
      [](RankProcess& rank) {
        const horovod::Session session(options_of(rank));
        const int n = session.size();
        std::vector<double> sum(5, 1.0 + session.rank());
        horovod::allreduce(sum, named("sum"));
        EXPECT_EQ(sum, std::vector<double>(5, n * (n + 1) / 2.0));
        EXPECT_EQ(horovod::allreduce_value(session.rank(), named("max", horovod::ReduceOp::kMax)),
                  n - 1);

        std::vector<int64_t> cast(3, session.rank());
        horovod::broadcast(cast, n - 1);
        EXPECT_EQ(cast, std::vector<int64_t>(3, n - 1));

        const std::vector<float> rows(2 * static_cast<size_t>(session.rank() + 1), 1.0f);
        const auto gathered = horovod::allgather(rows, 2);
        EXPECT_EQ(gathered.rows, n * (n + 1) / 2);
        EXPECT_EQ(gathered.values.size(), static_cast<size_t>(n * (n + 1)));

        const std::vector<int32_t> parcels(static_cast<size_t>(n), session.rank());
        const auto exchanged = horovod::alltoall(parcels);
        for (int from = 0; from < n; ++from) {
          EXPECT_EQ(exchanged.values[static_cast<size_t>(from)], from);
          EXPECT_EQ(exchanged.splits[static_cast<size_t>(from)], 1);
        }

        const std::vector<float> all(static_cast<size_t>(2 * n + 1), 1.0f);
        const auto share = horovod::reducescatter(all, 1, named("share"));
        EXPECT_EQ(share.rows, session.rank() == 0 ? 3 : 2);
        EXPECT_EQ(share.values,
                  std::vector<float>(static_cast<size_t>(share.rows), static_cast<float>(n)));

        horovod::barrier();
        EXPECT_GE(horovod::join(), 0);
      },
      session_by_function());
}

TEST_P(CapiFace, FuturesGroupsAndPreparedOperationsWork) {
  run_processes(
      GetParam(),
      [](RankProcess& rank) {
        const horovod::Session session(options_of(rank));
        const auto n = static_cast<float>(session.size());
        std::vector<float> a(10, 1.0f);
        horovod::Future<void> future = horovod::allreduce_async(a, named("a"));
        EXPECT_FALSE(future.poll());
        EXPECT_TRUE(future.wait_for(horovod::kForever));
        future.get();
        EXPECT_FALSE(future.valid());
        EXPECT_EQ(a, std::vector<float>(10, n));

        horovod::SharedBuffer<float> shared(2000);
        horovod::TensorList tensors;
        tensors.add("a", a).add("shared", shared);
        horovod::Prepared prepared(tensors, named(nullptr));
        for (int step = 0; step < 10; ++step) {
          a.assign(10, 2.0f);
          for (float& value : shared) value = 3.0f;
          if (step % 2 == 0) {
            prepared.run();
          } else {
            prepared.submit().get();
          }
          ASSERT_EQ(a, std::vector<float>(10, 2 * n));
          ASSERT_EQ(shared[1999], 3 * n);
        }
        a.assign(10, 1.0f);
        horovod::grouped_allreduce(tensors, named(nullptr));
        EXPECT_EQ(a, std::vector<float>(10, n));
        horovod::grouped_allreduce_async(tensors, named(nullptr)).get();
        EXPECT_EQ(a, std::vector<float>(10, n * n));
      },
      session_by_function());
}

TEST_P(CapiFace, AFailureIsAnExceptionOnEveryRank) {
  if (GetParam() == 1) GTEST_SKIP() << "needs ranks that disagree";
  run_processes(
      GetParam(),
      [](RankProcess& rank) {
        const horovod::Session session(options_of(rank));
        std::vector<float> values(session.rank() == 0 ? 3 : 4);
        try {
          horovod::allreduce(values, named("odd"));
          ADD_FAILURE() << "expected an exception";
        } catch (const horovod::Error& error) {
          EXPECT_EQ(error.status(), HVD_PRECONDITION_ERROR);
          EXPECT_NE(std::string(error.what()).find("odd"), std::string::npos) << error.what();
        }
        horovod::barrier();
      },
      session_by_function());
}

TEST_P(CapiFace, ProcessSetsAreValues) {
  run_processes(
      GetParam(),
      [](RankProcess& rank) {
        horovod::SessionOptions options = options_of(rank);
        options.dynamic_process_sets = true;
        if (rank.size() > 1) options.process_sets = {{0}};
        const horovod::Session session(options);
        const horovod::ProcessSet first(session.size() > 1 ? 1 : 0);
        EXPECT_EQ(first.size(), 1);
        EXPECT_EQ(first.included(), session.rank() == 0);
        EXPECT_EQ(first.ranks(), std::vector<int32_t>{0});
        EXPECT_THROW(horovod::ProcessSet(77).size(), horovod::Error);
        if (session.size() > 1) {
          horovod::ProcessSet pair = horovod::ProcessSet::add({0, 1});
          if (pair.included()) {
            horovod::Options in_pair = named("pair");
            in_pair.process_set = pair;
            EXPECT_EQ(horovod::allreduce_value(1.0f, in_pair), 2.0f);
          }
          pair.remove();
        }
        horovod::barrier();
      },
      session_by_function());
}

}  // namespace
}  // namespace hvd::testing
