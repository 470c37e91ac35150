// collectives.cc - hvd_bench_<mpi>: us, one MPI and Gloo in the same processes, on the same
// buffers. Started by that MPI's mpirun; rank 0 writes the readings. See README.md for the method.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <random>
#include <string>

#include "error.h"
#include "suites/hosts.h"
#include "suites/protection.h"
#include "suites/suites.h"

namespace hvd::bench {
namespace {

struct Options {
  std::string suite;
  std::string out;
  std::string mpi_name;
  int cores = 1;
  Bench::Depth depth = Bench::Depth::kFull;
  HostsOptions hosts{};
};

constexpr const char* kUsage =
    "usage: hvd_bench_<mpi> --suite allreduce|ops|gradients|hosts --out FILE --mpi NAME --cores N "
    "[--quick]\n"
    "hosts: --per-host N --link NAME --interface NAME --key-file FILE --store-address A "
    "--store-port P [--wire-mbits X] [--both-mbits X] [--engine native|mpi|gloo|protection] "
    "[--python P "
    "--objects F]";

bool take_hosts_option(const std::string& flag, const std::string& value, HostsOptions& hosts) {
  if (flag == "--per-host") {
    hosts.per_host = std::atoi(value.c_str());
  } else if (flag == "--link") {
    hosts.link = value;
  } else if (flag == "--interface") {
    hosts.interface = value;
  } else if (flag == "--key-file") {
    hosts.key_file = value;
  } else if (flag == "--store-address") {
    hosts.store_address = value;
  } else if (flag == "--store-port") {
    hosts.store_port = std::atoi(value.c_str());
  } else if (flag == "--wire-mbits") {
    hosts.wire_mbits = std::atof(value.c_str());
  } else if (flag == "--both-mbits") {
    hosts.both_mbits = std::atof(value.c_str());
  } else if (flag == "--engine") {
    hosts.engine = value;
  } else if (flag == "--python") {
    hosts.python = value;
  } else if (flag == "--objects") {
    hosts.objects = value;
  } else {
    return false;
  }
  return true;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--quick") {
      options.depth = Bench::Depth::kQuick;
      continue;
    }
    if (i + 1 == argc) throw BenchError(kUsage);
    const std::string value = argv[++i];
    if (flag == "--suite") {
      options.suite = value;
    } else if (flag == "--out") {
      options.out = value;
    } else if (flag == "--mpi") {
      options.mpi_name = value;
    } else if (flag == "--cores") {
      options.cores = std::atoi(value.c_str());
    } else if (!take_hosts_option(flag, value, options.hosts)) {
      throw BenchError("unknown option '" + flag + "'\n" + kUsage);
    }
  }
  if (options.out.empty() || options.mpi_name.empty() || options.cores < 1)
    throw BenchError(kUsage);
  return options;
}

// A name that no other job on this host has.
std::string random_job_id() {
  std::random_device device;
  return "bench-" + std::to_string(device()) + "-" + std::to_string(device());
}

// The directory of Gloo's rendezvous, gone when the benchmark is over.
class RendezvousDirectory {
 public:
  RendezvousDirectory(const World& world, const std::string& job_id)
      : owner_(world.is_first()), path_(std::filesystem::temp_directory_path() / job_id) {
    if (owner_) std::filesystem::create_directory(path_);
    world.barrier();
  }
  ~RendezvousDirectory() {
    std::error_code ignored;
    if (owner_) std::filesystem::remove_all(path_, ignored);
  }
  RendezvousDirectory(const RendezvousDirectory&) = delete;
  RendezvousDirectory& operator=(const RendezvousDirectory&) = delete;
  std::string path() const { return path_.string(); }

 private:
  bool owner_;
  std::filesystem::path path_;
};

// Seconds per case are chosen so that `allreduce` takes less than 6 minutes in all, --quick 90
// seconds.
Effort effort_of(const Options& options, const World& world, bool with_gloo) {
  const bool quick = options.depth == Bench::Depth::kQuick;
  const bool oversubscribed = world.size() > options.cores;
  Effort effort;
  effort.min_rounds = quick ? 3 : 7;
  effort.min_near_rounds = quick ? 3 : 7;
  if (oversubscribed) {
    effort.seconds_per_case = quick ? 1 : 3;
    effort.block_seconds = 0.012;  // several scheduler ticks
  } else {
    effort.seconds_per_case = with_gloo ? (quick ? 1.8 : 8) : (quick ? 1.0 : 5);
  }
  if (options.suite == "gradients") effort.seconds_per_case *= 3;  // one case, slow operations
  if (options.suite == "ops") effort.seconds_per_case /= 2;        // sixteen cases, few contestants
  return effort;
}

std::vector<CaseReadings> run_suite(const std::string& suite, const Bench& bench) {
  if (suite == "allreduce") return run_allreduce(bench);
  if (suite == "ops") return run_ops(bench);
  if (suite == "gradients") return run_gradients(bench);
  throw BenchError("unknown suite '" + suite + "', expected allreduce, ops or gradients");
}

std::vector<CaseReadings> run_on_hosts(const World& world, const Options& options) {
  HostsOptions hosts = options.hosts;
  hosts.job_id = world.from_first(random_job_id());
  const RendezvousDirectory directory(world, hosts.job_id);
  hosts.directory = directory.path();
  hosts.mpi_name = options.mpi_name;
  hosts.cores = options.cores;
  hosts.quick = options.depth == Bench::Depth::kQuick;
  return hosts.engine == "protection" ? run_protection(world, hosts) : run_hosts(world, hosts);
}

std::vector<CaseReadings> run_on_one_host(const World& world, const Options& options) {
  const std::string job_id = world.from_first(random_job_id());
  Ours ours({.rank = world.rank(), .size = world.size(), .job_id = job_id});
  const MpiPeer mpi(options.mpi_name);
  const bool oversubscribed = world.size() > options.cores;
  std::unique_ptr<GlooPeer> gloo;
  if (!oversubscribed && options.suite != "ops") {
    const RendezvousDirectory rendezvous(world, job_id);
    gloo = GlooPeer::connect(
        {.rank = world.rank(), .size = world.size(), .directory = rendezvous.path()});
    world.barrier();  // the directory goes when every rank has connected
  }
  Placement placement(world,
                      oversubscribed ? probe_by_threads(world) : std::function<double()>([&] {
                        return ours.bare().probe_round_trip_ns();
                      }));
  const Bench bench{.world = world,
                    .ours = ours,
                    .mpi = mpi,
                    .gloo = gloo.get(),
                    .placement = placement,
                    .effort = effort_of(options, world, gloo != nullptr),
                    .depth = options.depth,
                    .cores = options.cores};

  return run_suite(options.suite, bench);
}

void run(const World& world, const Options& options) {
  if (world.size() < 2) throw BenchError("needs at least 2 ranks");
  const bool on_hosts = options.suite == "hosts";
  const Readings readings{
      .bench = options.suite,
      .source = options.mpi_name,
      .cases = on_hosts ? run_on_hosts(world, options) : run_on_one_host(world, options)};
  if (world.is_first()) save(readings, options.out);
  world.barrier();  // nobody leaves, and takes its peers' connections along, before all are done
}

}  // namespace
}  // namespace hvd::bench

int main(int argc, char** argv) {
  using hvd::bench::World;
  hvd::bench::Options options;
  std::string mistake;
  try {
    options = hvd::bench::parse(argc, argv);
  } catch (const std::exception& error) {
    mistake = error.what();
  }
  const bool over_mpi = options.hosts.engine == "mpi";
  const World world(&argc, &argv, over_mpi ? World::Threads::kMany : World::Threads::kOne);
  if (!mistake.empty()) World::give_up(mistake);
  try {
    hvd::bench::run(world, options);
  } catch (const std::exception& error) {
    World::give_up(error.what());
  }
  return 0;
}
