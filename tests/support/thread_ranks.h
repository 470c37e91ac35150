// thread_ranks.h - runs a test function on `size` ranks that are threads of this process. Each has
// an engine of its own; all share one mapping of the segment, so that thread sanitizers see every
// access. Below the C interface only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "tests/support/reference.h"

namespace hvd::testing {

// What one collective call needs, with defaults for the rest.
struct EngineCall {
  wire::Kind kind = wire::Kind::kAllreduce;
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kFloat32;
  std::string name = {};
  int32_t set = 0;
  int32_t root = -1;
  int32_t wire = -1;
  double prescale = 1.0, postscale = 1.0;
  std::vector<int64_t> shape = {};
  std::vector<int32_t> splits = {};
};

class TestRank {
 public:
  TestRank(int rank, int size, engine::Engine& engine)
      : rank_(rank), size_(size), engine_(engine) {}

  int rank() const { return rank_; }
  int size() const { return size_; }
  engine::Engine& engine() { return engine_; }

  // One call; `out` may equal `in`.
  Status run(const EngineCall& call, const void* in, void* out,
             Deadline deadline = Deadline::never());
  Result<uint64_t> submit(const EngineCall& call, const void* in, void* out);
  // Waits, copies what the operation produced, releases the handle.
  Result<Bytes> collect(uint64_t handle);
  // submit + collect, for operations whose output size follows from negotiation.
  Result<Bytes> gather(const EngineCall& call, const void* in);

 private:
  void tune_now_and_then();

  const int rank_;
  const int size_;
  engine::Engine& engine_;
  int calls_ = 0;
  std::minstd_rand random_{1};
};

struct ThreadOptions {
  Settings settings;
  std::vector<std::vector<int32_t>> process_sets;
  std::function<void(const std::vector<shm::Job*>&)>
      with_jobs;  // before the ranks start; for tests that damage the segment
};

// How many hosts run_ranks() simulates for a job of this size (HVD_TEST_HOSTS): results of several
// hosts are added in another order than those of one.
int simulated_hosts(int size);
// Whether their data goes through Gloo (HVD_TEST_GLOO), which adds and rounds in an order of its
// own.
bool runs_over_gloo();
// Equal bits on one host, equal up to rounding on several.
::testing::AssertionResult same_result(hvd_dtype dtype, const Bytes& expected, const Bytes& actual,
                                       int size);

// Fails the current test if an engine cannot start. Returns when all ranks are through.
void run_ranks(int size, const std::function<void(TestRank&)>& function,
               const ThreadOptions& options = {});

}  // namespace hvd::testing
