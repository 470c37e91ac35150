#include "tests/support/thread_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "gloo/library.h"
#include "net/pair_mesh.h"
#include "tests/support/deal_out.h"
#include "tests/support/mpi_ranks.h"

namespace hvd::testing {
namespace {

engine::Submission submission_of(const EngineCall& call, const engine::TensorArg& tensor) {
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

engine::TensorArg tensor_of(const EngineCall& call, const void* in, void* out) {
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

// HVD_TEST_TUNING=N: before every N-th call of rank 0 it proposes another tuning, at random.
// Results must not show it.
void TestRank::tune_now_and_then() {
  static const char* const text = std::getenv("HVD_TEST_TUNING");
  if (text == nullptr || rank_ != 0 || ++calls_ % std::max(1, std::atoi(text)) != 0) return;
  tune::Tuning tuning;
  for (size_t k = 0; k < tune::kKnobCount; ++k) {
    const tune::KnobInfo& info = tune::info_of(static_cast<tune::Knob>(k));
    if (!info.may_change_bits)
      tuning.levels[k] = static_cast<uint8_t>(random_() % info.level_count());
  }
  engine_.propose_tuning(tuning);
}

Status TestRank::run(const EngineCall& call, const void* in, void* out, Deadline deadline) {
  tune_now_and_then();
  const engine::TensorArg tensor = tensor_of(call, in, out);
  return engine_.run(call.set, submission_of(call, tensor), deadline);
}

Result<uint64_t> TestRank::submit(const EngineCall& call, const void* in, void* out) {
  tune_now_and_then();
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

Result<Bytes> TestRank::gather(const EngineCall& call, const void* in) {
  HVD_TRY_ASSIGN(const uint64_t handle, submit(call, in, nullptr));
  return collect(handle);
}

// HVD_TEST_HOSTS=N deals the ranks out to N hosts, each with a segment of its own: the same tests,
// over streams.
int simulated_hosts(int size) {
  const char* text = std::getenv("HVD_TEST_HOSTS");
  return text == nullptr ? 1 : std::clamp(std::atoi(text), 1, size);
}

::testing::AssertionResult same_result(hvd_dtype dtype, const Bytes& expected, const Bytes& actual,
                                       int size) {
  const auto type = static_cast<DType>(dtype);
  const bool rounds = type == DType::kFloat16 || type == DType::kBfloat16 ||
                      type == DType::kFloat32 || type == DType::kFloat64;
  if (simulated_hosts(size) == 1 || !rounds) return same_bits(dtype, expected, actual);
  // 16-bit sums of a host are rounded before they travel; terms may cancel afterwards.
  const double tolerance = type == DType::kFloat64   ? 1e-12
                           : type == DType::kFloat32 ? 1e-5
                           : type == DType::kFloat16 ? 1e-2
                                                     : 8e-2;
  return close_to(dtype, expected, actual, tolerance);
}

bool runs_over_gloo() { return std::getenv("HVD_TEST_GLOO") != nullptr; }

namespace {

// HVD_TEST_GLOO: hosts move their data through Gloo, over loopback.
std::unique_ptr<collective::gloo::Domain> make_gloo() {
  if (!runs_over_gloo()) return nullptr;
  auto plugin = gloo::load(process_environment());
  EXPECT_TRUE(plugin) << plugin.status().message();
  if (!plugin) return nullptr;
  return std::make_unique<collective::gloo::Domain>(collective::gloo::DomainOptions{
      .plugin = *plugin, .address = "127.0.0.1", .least_reduce_bytes = 0});
}

Result<std::vector<std::unique_ptr<shm::Job>>> make_jobs(const topology::HostMap& map, int size,
                                                         const ThreadOptions& options) {
  std::vector<std::unique_ptr<shm::Job>> jobs;
  for (int32_t host = 0; host < map.host_count(); ++host) {
    shm::JobOptions job_options;
    job_options.hostname = map.names[static_cast<size_t>(host)];
    job_options.arena_bytes = uint64_t{1} << 30;
    job_options.cache_capacity = options.settings.cache_capacity;
    const auto& ranks = map.ranks_of[static_cast<size_t>(host)];
    job_options.here.assign(ranks.begin(), ranks.end());
    HVD_TRY_ASSIGN(auto of_host, shm::Job::in_process(size, job_options));
    for (auto& job : of_host) jobs.push_back(std::move(job));
  }
  return jobs;
}

topology::Topology topology_of(const topology::HostMap& map, int rank, int size) {
  const auto host = static_cast<size_t>(map.host_of[static_cast<size_t>(rank)]);
  const auto& ranks = map.ranks_of[host];
  topology::Topology t;
  t.rank = rank;
  t.size = size;
  t.local_rank = rank - ranks[0];
  t.local_size = static_cast<int32_t>(ranks.size());
  for (size_t other = 0; other < map.ranks_of.size(); ++other) {
    if (map.ranks_of[other].size() <= static_cast<size_t>(t.local_rank)) continue;
    if (other < host) ++t.cross_rank;
    t.cross_size += other == host ? 0 : 1;
  }
  t.hostname = map.names[host];
  t.job_id = "threads";
  return t;
}

}  // namespace

void run_ranks(int size, const std::function<void(TestRank&)>& function,
               const ThreadOptions& options) {
  const topology::HostMap map = deal_out(size, simulated_hosts(size));
  if (runs_under_mpi()) return run_mpi_ranks(size, map, function, options);
  net::PairNetwork network(size);
  auto jobs = make_jobs(map, size, options);
  ASSERT_TRUE(jobs) << jobs.status().message();
  std::vector<shm::Job*> views;
  for (auto& job : *jobs) views.push_back(job.get());
  if (options.with_jobs) options.with_jobs(views);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank, job = std::move((*jobs)[static_cast<size_t>(rank)])]() mutable {
      engine::EngineOptions engine_options;
      engine_options.topology = topology_of(map, rank, size);
      engine_options.settings = options.settings;
      engine_options.process_sets = options.process_sets;
      engine_options.job = std::move(job);
      if (map.host_count() > 1) {
        engine_options.hosts = map;
        engine_options.mesh = network.mesh(rank);
        engine_options.gloo = make_gloo();
      }
      auto engine = engine::Engine::start(std::move(engine_options));
      ASSERT_TRUE(engine) << "rank " << rank << ": " << engine.status().message();
      TestRank test_rank(rank, size, **engine);
      function(test_rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace hvd::testing
