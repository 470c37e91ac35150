// init.cc - hvd_bench_init --out FILE: how long init takes, from the moment when the last rank
// calls it until the last one has returned. Started by horovodrun once per round; rank 0 adds its
// round to FILE.
#include <horovod/hvd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>

#include "error.h"
#include "ours.h"
#include "report/readings.h"

namespace hvd::bench {
namespace {

// All ranks are on one machine and share its clock.
double now_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double largest(double value) {
  const int64_t shape[] = {1};
  hvd_request request;
  hvd_request_init(&request);
  request.kind = HVD_ALLREDUCE;
  request.dtype = HVD_FLOAT64;
  request.reduce_op = HVD_OP_MAX;
  request.ndim = 1;
  request.shape = shape;
  request.input = request.output = &value;
  expect_ok(hvd_run(&request, HVD_FOREVER), "largest");
  return value;
}

void add_round(const std::string& path, double milliseconds) {
  Readings readings{.bench = "launch", .source = "init", .cases = {}};
  if (std::filesystem::exists(path)) {
    readings = load(path);
  } else {
    readings.cases.push_back({.name = "init np=" + std::to_string(hvd_size()),
                              .unit = "ms",
                              .np = hvd_size(),
                              .entrants = {{.name = "hvd_init", .role = Role::kOurs}},
                              .rounds = {}});
  }
  readings.cases[0].rounds.push_back({.values = {milliseconds}});
  save(readings, path);
}

void run(int argc, char** argv) {
  if (argc != 3 || std::strcmp(argv[1], "--out") != 0) {
    throw BenchError("usage: hvd_bench_init --out FILE");
  }
  const double called = now_ms();
  expect_ok(hvd_init(nullptr), "init");
  const double returned = now_ms();
  const double last_call = largest(called), last_return = largest(returned);
  if (hvd_rank() == 0) add_round(argv[2], last_return - last_call);
  expect_ok(hvd_shutdown(), "shutdown");
}

}  // namespace
}  // namespace hvd::bench

int main(int argc, char** argv) {
  try {
    hvd::bench::run(argc, argv);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "bench: " << error.what() << '\n';
    return 1;
  }
}
