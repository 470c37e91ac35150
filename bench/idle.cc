// idle.cc - hvd_bench_idle: what the library costs while nothing happens. Started by horovodrun.
//   hvd_bench_idle --seconds S --out FILE
// Two cases: every rank sleeps outside the library; rank 0 waits in it for a peer that comes late.
// CPU time of all threads of all ranks, in percent of one core.
#include <horovod/hvd.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

#include "error.h"
#include "ours.h"
#include "report/readings.h"

namespace hvd::bench {
namespace {

using Seconds = std::chrono::duration<double>;

Seconds cpu_time() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return Seconds(static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec));
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// The library adds up what it cost itself, after the clock was read.
double sum_over_ranks(const std::string& name, double value) {
  float cell = static_cast<float>(value);
  const Request request(HVD_ALLREDUCE, {.name = name, .count = 1, .input = &cell, .output = &cell});
  expect_ok(hvd_run(&request.get(), HVD_FOREVER), "allreduce");
  return cell;
}

template <typename Quiet>
double percent_of_a_core(const std::string& name, Quiet quiet) {
  const Seconds before = cpu_time();
  const auto start = std::chrono::steady_clock::now();
  quiet();
  const Seconds used = cpu_time() - before;
  const Seconds elapsed = std::chrono::steady_clock::now() - start;
  return sum_over_ranks("idle.sum." + name, 100 * used.count() / elapsed.count());
}

CaseReadings reading(const std::string& name, double percent) {
  return {.name = "np=" + std::to_string(hvd_size()) + " " + name,
          .metric = "share",
          .unit = "%",
          .np = hvd_size(),
          .entrants = {{.name = "horovod", .role = Role::kOurs}},
          .rounds = {{.values = {percent}}}};
}

void run(Seconds seconds, const std::string& out) {
  expect_ok(hvd_init(nullptr), "init");
  sum_over_ranks("idle.first", 1);

  const double asleep = percent_of_a_core("asleep", [&] { std::this_thread::sleep_for(seconds); });
  const double waiting = percent_of_a_core("waiting", [&] {
    if (hvd_rank() != 0) std::this_thread::sleep_for(seconds);
    sum_over_ranks("idle.late", 1);
  });

  if (hvd_rank() == 0) {
    save({.bench = "idle",
          .source = "idle",
          .cases = {reading("asleep", asleep), reading("waiting", waiting)}},
         out);
  }
  expect_ok(hvd_shutdown(), "shutdown");
}

}  // namespace
}  // namespace hvd::bench

int main(int argc, char** argv) {
  double seconds = 5;
  std::string out;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) == "--seconds") seconds = std::atof(argv[i + 1]);
    if (std::string(argv[i]) == "--out") out = argv[i + 1];
  }
  try {
    if (out.empty()) throw hvd::bench::BenchError("usage: hvd_bench_idle --seconds S --out FILE");
    hvd::bench::run(hvd::bench::Seconds(seconds), out);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "bench: " << error.what() << '\n';
    return 1;
  }
}
