#include "horovodrun/measure_engines.h"

#include <horovod/hvd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace hvd::measure {
namespace {

constexpr size_t kSmallBytes = 4 << 10;
constexpr size_t kLargeBytes = 16 << 20;
constexpr int kSmallRounds = 300;
constexpr int kLargeRounds = 8;

bool complain(const char* engine, const char* what) {
  std::fprintf(stderr, "%s of engine %s: %s\n", what, engine, hvd_last_error());
  return false;
}

// Nanoseconds of the median round; the first rounds open connections and are left out. 0: failed.
int64_t time_allreduce(const char* engine, size_t bytes, int rounds) {
  std::vector<float> data(bytes / sizeof(float), 0.0f);
  const int64_t shape[] = {static_cast<int64_t>(data.size())};
  hvd_request request;
  hvd_request_init(&request);
  request.kind = HVD_ALLREDUCE;
  request.dtype = HVD_FLOAT32;
  request.reduce_op = HVD_OP_SUM;
  request.ndim = 1;
  request.shape = shape;
  request.input = request.output = data.data();
  request.name = bytes == kSmallBytes ? "small" : "large";
  constexpr int kWarmUp = 3;
  std::vector<int64_t> took;
  for (int round = -kWarmUp; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    if (hvd_run(&request, HVD_FOREVER) != HVD_OK) {
      complain(engine, "allreduce");
      return 0;
    }
    const auto span = std::chrono::steady_clock::now() - begin;
    if (round >= 0) took.push_back(std::chrono::nanoseconds(span).count());
  }
  std::nth_element(took.begin(), took.begin() + rounds / 2, took.end());
  return took[static_cast<size_t>(rounds / 2)];
}

bool measure(const char* engine) {
  setenv("HOROVOD_CPU_OPERATIONS", engine, 1);
  if (hvd_init(nullptr) != HVD_OK) return complain(engine, "init");
  const bool is_first = hvd_rank() == 0;
  const int64_t small = time_allreduce(engine, kSmallBytes, kSmallRounds);
  const int64_t large = small > 0 ? time_allreduce(engine, kLargeBytes, kLargeRounds) : 0;
  if (hvd_shutdown() != HVD_OK) return complain(engine, "shutdown");
  if (small <= 0 || large <= 0) return false;
  if (is_first) {
    std::printf("engine %s %lld %lld\n", engine, static_cast<long long>(small),
                static_cast<long long>(large));
    std::fflush(stdout);
  }
  return true;
}

}  // namespace

int measure_engines() { return measure("mpi") && measure("native") ? 0 : 1; }

}  // namespace hvd::measure
