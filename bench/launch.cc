// launch.cc - hvd_bench_launch: wall time of whole jobs, from the start of the launcher to its end.
//   hvd_bench_launch --np N [--title TEXT] --rounds R --out FILE -- NAME ours|peer COMMAND... [--
//   NAME ... ]
// Jobs run one after the other, a round of each, so that a busy moment of the machine hits all
// alike.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "error.h"
#include "report/readings.h"

extern char** environ;

namespace hvd::bench {
namespace {

struct Job {
  Entrant entrant;
  std::vector<char*> command;  // ends with a null pointer
};

struct Options {
  int np = 0;
  int rounds = 0;
  std::string title;  // of the case; default: the number of ranks
  std::string out;
  std::vector<Job> jobs;
};

constexpr const char* kUsage =
    "usage: hvd_bench_launch --np N [--title TEXT] --rounds R --out FILE "
    "-- NAME ours|peer COMMAND... [-- ...]";

Options parse(int argc, char** argv) {
  Options options;
  int i = 1;
  for (; i + 1 < argc && std::strcmp(argv[i], "--") != 0; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--np") options.np = std::atoi(argv[i + 1]);
    if (flag == "--rounds") options.rounds = std::atoi(argv[i + 1]);
    if (flag == "--title") options.title = argv[i + 1];
    if (flag == "--out") options.out = argv[i + 1];
  }
  while (i + 3 < argc) {  // argv[i] is "--"
    Job job{.entrant = {.name = argv[i + 1],
                        .role = std::strcmp(argv[i + 2], "ours") == 0 ? Role::kOurs : Role::kPeer},
            .command = {}};
    for (i += 3; i < argc && std::strcmp(argv[i], "--") != 0; ++i) job.command.push_back(argv[i]);
    job.command.push_back(nullptr);
    options.jobs.push_back(std::move(job));
  }
  if (options.np < 1 || options.rounds < 1 || options.out.empty() || options.jobs.empty()) {
    throw BenchError(kUsage);
  }
  return options;
}

double milliseconds_of(const Job& job) {
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
  const auto start = std::chrono::steady_clock::now();
  pid_t pid = 0;
  const int failed =
      posix_spawnp(&pid, job.command[0], &quiet, nullptr, job.command.data(), environ);
  posix_spawn_file_actions_destroy(&quiet);
  if (failed != 0) {
    throw BenchError(job.entrant.name + ": cannot start '" + job.command[0] +
                     "': " + std::strerror(failed));
  }
  int status = 0;
  waitpid(pid, &status, 0);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw BenchError(job.entrant.name + ": '" + job.command[0] + "' failed with wait status " +
                     std::to_string(status));
  }
  return took.count();
}

void run(const Options& options) {
  const std::string title = "np=" + std::to_string(options.np);
  CaseReadings readings{.name = options.title.empty() ? title : options.title,
                        .unit = "ms",
                        .np = options.np,
                        .entrants = {},
                        .rounds = {}};
  for (const Job& job : options.jobs) {
    readings.entrants.push_back(job.entrant);
    milliseconds_of(job);  // programs and libraries come into the page cache
  }
  for (int number = 0; number < options.rounds; ++number) {
    Round round;
    for (const Job& job : options.jobs) round.values.push_back(milliseconds_of(job));
    readings.rounds.push_back(std::move(round));
  }
  save({.bench = "launch", .source = "launch", .cases = {readings}}, options.out);
}

}  // namespace
}  // namespace hvd::bench

int main(int argc, char** argv) {
  try {
    hvd::bench::run(hvd::bench::parse(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "bench: " << error.what() << '\n';
    return 1;
  }
}
