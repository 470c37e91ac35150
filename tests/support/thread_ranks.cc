#include "tests/support/thread_ranks.h"

#include <gtest/gtest.h>

#include <thread>

namespace hvd::testing {
namespace {

engine::Submission submission_of(const Call& call, const engine::TensorArg& tensor) {
  engine::Submission s;
  s.kind = call.op == ReduceOp::kAdasum && call.kind == wire::Kind::kAllreduce ? wire::Kind::kAdasum
                                                                               : call.kind;
  s.reduce_op = call.op;
  s.wire_dtype = call.wire;
  s.root_rank = call.root;
  s.prescale = call.prescale;
  s.postscale = call.postscale;
  s.tensors = {&tensor, 1};
  return s;
}

engine::TensorArg tensor_of(const Call& call, const void* in, void* out) {
  engine::TensorArg tensor;
  tensor.name = call.name;
  tensor.dtype = call.dtype;
  tensor.shape = call.shape;
  tensor.splits = call.splits;
  tensor.input = in;
  tensor.output = out;
  return tensor;
}

}  // namespace

Status TestRank::run(const Call& call, const void* in, void* out, Deadline deadline) {
  const engine::TensorArg tensor = tensor_of(call, in, out);
  return engine_.run(call.set, submission_of(call, tensor), deadline);
}

Result<uint64_t> TestRank::submit(const Call& call, const void* in, void* out) {
  const engine::TensorArg tensor = tensor_of(call, in, out);
  return engine_.submit(call.set, submission_of(call, tensor));
}

Result<Bytes> TestRank::collect(uint64_t handle) {
  const Status status = engine_.wait(handle, Deadline::never());
  Bytes bytes;
  if (status.is_ok()) {
    HVD_TRY_ASSIGN(engine::Operation* const op, engine_.completed_operation(handle));
    const engine::Output& output = engine_.keep_output(*op, 0);
    const auto* data = static_cast<const std::byte*>(output.data);
    bytes.assign(data, data + output.bytes);
  }
  HVD_TRY(engine_.release(handle));
  HVD_TRY(status);
  return bytes;
}

Result<Bytes> TestRank::gather(const Call& call, const void* in) {
  HVD_TRY_ASSIGN(const uint64_t handle, submit(call, in, nullptr));
  return collect(handle);
}

void run_ranks(int size, const std::function<void(TestRank&)>& function,
               const ThreadOptions& options) {
  shm::JobOptions job_options;
  job_options.hostname = "threads";
  job_options.arena_bytes = uint64_t{1} << 30;
  job_options.cache_capacity = options.settings.cache_capacity;
  auto jobs = shm::Job::in_process(size, job_options);
  ASSERT_TRUE(jobs) << jobs.status().message();
  std::vector<shm::Job*> views;
  for (auto& job : *jobs) views.push_back(job.get());
  if (options.with_jobs) options.with_jobs(views);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank, job = std::move((*jobs)[static_cast<size_t>(rank)])]() mutable {
      engine::EngineOptions engine_options;
      engine_options.topology = {rank, size, rank, size, 0, 1, "threads", "threads"};
      engine_options.settings = options.settings;
      engine_options.process_sets = options.process_sets;
      engine_options.job = std::move(job);
      auto engine = engine::Engine::start(std::move(engine_options));
      ASSERT_TRUE(engine) << "rank " << rank << ": " << engine.status().message();
      TestRank test_rank(rank, size, **engine);
      function(test_rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace hvd::testing
