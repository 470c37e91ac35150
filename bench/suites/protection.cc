// Which operations meet:
//   fast link   4 B to 1 KiB, which travel in control frames; bytes of 64 KiB and 1 MiB; objects of
//               Python; 16 and 64 MiB of numbers
//   10 Gb/s     64 MiB of numbers
// Entrants are workers (engine_worker.h): "default", "TLS=1" and, as the peer, "TLS=0".
#include "suites/protection.h"

#include <filesystem>
#include <memory>

#include "engine_worker.h"
#include "suites/suites.h"

namespace hvd::bench {
namespace {

constexpr size_t kKiB = 1024, kMiB = 1024 * kKiB;

struct Workers {
  std::unique_ptr<EngineWorker> standard, all, none;
};

class Protection {
 public:
  Protection(const World& world, const HostsOptions& options)
      : world_(world),
        options_(options),
        place_({.rank = world.rank(),
                .size = world.size(),
                .per_host = options.per_host,
                .job_id = options.job_id,
                .key_file = options.key_file,
                .store_address = options.store_address,
                .engine = "native"}),
        placement_(world, probe_through_file(world, options.directory)) {
    const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    start(engines_, {(folder / "hvd_bench_hosts_worker").string()});
    if (!options.objects.empty()) start(pythons_, {options.python, options.objects});
    await(engines_, EngineWorker::kAllreduce);
    if (pythons_.none != nullptr) await(pythons_, EngineWorker::kObject);
    world.barrier();
  }

  std::vector<CaseReadings> run() {
    std::vector<CaseReadings> cases;
    if (options_.wire_mbits > 0) {
      cases.push_back(measure_one("numbers", engines_, EngineWorker::kAllreduce, 64 * kMiB));
      return cases;
    }
    for (const size_t bytes : {size_t{4}, kKiB}) {
      cases.push_back(measure_one("small", engines_, EngineWorker::kAllreduce, bytes));
    }
    for (const size_t bytes : {64 * kKiB, kMiB}) {
      cases.push_back(measure_one("bytes", engines_, EngineWorker::kBytes, bytes));
    }
    if (pythons_.none != nullptr) {
      for (const size_t bytes : {4 * kKiB, 256 * kKiB}) {
        cases.push_back(measure_one("object", pythons_, EngineWorker::kObject, bytes));
      }
    }
    for (const size_t bytes : {16 * kMiB, 64 * kMiB}) {
      cases.push_back(measure_one("numbers", engines_, EngineWorker::kAllreduce, bytes));
    }
    return cases;
  }

 private:
  void start(Workers& workers, const std::vector<std::string>& program) {
    const auto make = [&](const char* setting) {
      return std::make_unique<EngineWorker>(program, place_, next_port_++, setting);
    };
    next_port_ = std::max(next_port_, options_.store_port);
    workers.standard = make("");
    workers.all = make("HOROVOD_TLS=1");
    workers.none = make("HOROVOD_TLS=0");
  }

  // All of them are there. A Python that still imports its modules takes the core from whoever is
  // measured for a tick of the scheduler at a time: 4 ms and more, whatever the operation.
  static void await(const Workers& workers, EngineWorker::Kind kind) {
    for (const EngineWorker* worker :
         {workers.standard.get(), workers.all.get(), workers.none.get()}) {
      worker->run({.kind = kind, .operations = 1, .bytes = 4});
    }
  }

  CaseReadings measure_one(const std::string& what, const Workers& workers, EngineWorker::Kind kind,
                           size_t bytes) {
    Contest contest{
        .name = "protection " + what + " " + options_.link + " bytes=" + std::to_string(bytes),
        .bytes = bytes,
        .contestants = {}};
    const auto add = [&](const char* name, Role role, const EngineWorker& worker) {
      contest.contestants.push_back({.entrant = {.name = name, .role = role},
                                     .run =
                                         [&worker, kind, bytes](int operations) {
                                           worker.run(
                                               {.kind = kind,
                                                .operations = static_cast<uint32_t>(operations),
                                                .bytes = bytes});
                                         },
                                     .check = {}});
    };
    add("default", Role::kOurs, *workers.standard);
    add("TLS=1", Role::kOurs, *workers.all);
    add("TLS=0", Role::kOurs, *workers.none);
    Effort effort;
    effort.seconds_per_case = options_.quick ? 2 : 8;
    effort.min_rounds = effort.min_near_rounds = options_.quick ? 3 : 7;
    effort.block_seconds = 0.02;  // a command takes 20 microseconds itself
    return measure(world_, placement_, contest, effort);
  }

  const World& world_;
  const HostsOptions options_;
  const HostsPlace place_;
  Placement placement_;
  int next_port_ = 0;
  Workers engines_, pythons_;
};

}  // namespace

std::vector<CaseReadings> run_protection(const World& world, const HostsOptions& options) {
  use_own_core(world.rank());  // and that of its workers
  return Protection(world, options).run();
}

}  // namespace hvd::bench
