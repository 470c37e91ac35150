// Which sizes and contestants meet on which link:
//   fast link         4 B to 64 MiB: the layer, the C ABI, MPI, Gloo; 64 MiB also against iperf3
//   slow links        16 and 64 MiB against what TCP carries there; float16 on the wire
//   engine gloo       64 KiB to 64 MiB through the C ABI over Gloo against the bare call of Gloo
//   engine mpi        1 to 64 MiB through the C ABI against the bare call of the same MPI
#include "suites/hosts.h"

#include <sched.h>

#include <memory>
#include <optional>

#include "gloo_peer.h"
#include "ours.h"
#include "ours_hosts.h"
#include "suites/suites.h"

namespace hvd::bench {
namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;

class HostsSuite {
 public:
  HostsSuite(const World& world, const HostsOptions& options)
      : world_(world),
        options_(options),
        ours_({.rank = world.rank(),
               .size = world.size(),
               .per_host = options.per_host,
               .job_id = options.job_id,
               .key_file = options.key_file,
               .store_address = options.store_address,
               .store_port = options.store_port,
               .engine = options.engine}),
        mpi_(options.mpi_name),
        placement_(world, oversubscribed() ? probe_by_threads(world)
                                           : probe_through_file(world, options.directory)) {
    if (oversubscribed()) ours_.layer().set_spin_count(0);
    if (has_gloo()) {
      gloo_ = GlooPeer::connect({.rank = world.rank(),
                                 .size = world.size(),
                                 .directory = options.directory,
                                 .interface = options.interface});
    }
    world.barrier();
  }

  std::vector<CaseReadings> run() {
    std::vector<CaseReadings> cases;
    for (const size_t bytes : sizes()) cases.push_back(measure_size(bytes));
    return cases;
  }

 private:
  bool oversubscribed() const { return world_.size() > options_.cores; }
  bool is_slow() const { return options_.wire_mbits > 0; }
  bool has_gloo() const { return !is_slow() && !oversubscribed() && options_.engine != "mpi"; }

  std::vector<size_t> sizes() const {
    if (is_slow() && oversubscribed()) return {16 * kMiB};
    if (is_slow()) return {16 * kMiB, 64 * kMiB};
    if (options_.engine == "gloo")
      return {64 * kKiB, 256 * kKiB, 1 * kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB};
    if (options_.engine == "mpi") return {1 * kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB};
    return {4,          kKiB,     4 * kKiB, 16 * kKiB, 64 * kKiB,
            256 * kKiB, 1 * kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB};
  }

  Effort effort() const {
    Effort effort;
    effort.seconds_per_case = options_.quick ? 2 : 8;
    effort.min_rounds = effort.min_near_rounds = options_.quick ? 3 : 7;
    effort.block_seconds = 0.005;
    return effort;
  }

  Contestant layer(std::span<float> data) {
    collective::hosts::BareHosts& group = ours_.layer();
    return allreduce_contestant(
        world_, {.name = "layer", .role = Role::kOurs}, data, repeated([&group, data] {
          expect_ok(group.allreduce(data.data(), data.size(), DType::kFloat32, ReduceOp::kSum),
                    "layer");
        }));
  }

  CaseReadings measure_size(size_t bytes) {
    const PrivateBuffer buffer(bytes / sizeof(float));
    const std::span<float> data(buffer.data(), buffer.size());
    const Request::Tensor tensor{.name = std::to_string(bytes),
                                 .count = data.size(),
                                 .input = data.data(),
                                 .output = data.data()};
    const Request plain(HVD_ALLREDUCE, tensor);
    const Prepared prepared(std::span(&plain.get(), 1));
    Request::Tensor short_tensor = tensor;
    short_tensor.name += ".float16";
    const Request narrow(HVD_ALLREDUCE, short_tensor, HVD_FLOAT16);
    const Prepared prepared_narrow(std::span(&narrow.get(), 1));

    const bool is_native = options_.engine == "native";
    Contest contest{.name = title(bytes), .bytes = bytes, .contestants = {}};
    const auto add = [&](Contestant contestant) {
      contest.contestants.push_back(std::move(contestant));
    };
    if (is_native) add(layer(data));
    add(allreduce_contestant(
        world_, {.name = is_native ? "prepared" : options_.engine + " engine", .role = Role::kOurs},
        data, repeated([&prepared] { prepared.run(); })));
    if (is_slow()) {
      add(allreduce_contestant(world_, {.name = "float16 wire", .role = Role::kOurs}, data,
                               repeated([&prepared_narrow] { prepared_narrow.run(); })));
    }
    if (options_.engine != "gloo") {
      add(allreduce_contestant(
          world_, {.name = mpi_.name(), .role = Role::kPeer}, data,
          repeated([this, data] { mpi_.allreduce(data.data(), data.size()); })));
    }
    if (gloo_ != nullptr) {
      add(allreduce_contestant(world_, {.name = "gloo", .role = Role::kPeer}, data,
                               repeated(gloo_->allreduce(data.data(), data.size()))));
      contest.contestants.back().every = is_native && bytes < kMiB ? kGlooEvery : 1;
    }
    add_links(contest);
    return measure(world_, placement_, contest, effort());
  }

  // With two hosts every byte of the tensor crosses the link once in each direction.
  void add_links(Contest& contest) const {
    const auto microseconds = [&](double mbits) {
      return static_cast<double>(contest.bytes) * 8 / mbits;
    };
    if (is_slow()) {
      contest.fixed.push_back(
          {{.name = "wire", .role = Role::kLimit}, microseconds(options_.wire_mbits)});
    }
    if (!is_slow() && options_.both_mbits > 0 && contest.bytes >= 16 * kMiB) {
      contest.fixed.push_back(
          {{.name = "iperf3 --bidir", .role = Role::kPeer}, microseconds(options_.both_mbits)});
    }
  }

  std::string title(size_t bytes) const {
    return "2x" + std::to_string(options_.per_host) + " " + options_.link +
           " bytes=" + std::to_string(bytes);
  }

  const World& world_;
  const HostsOptions options_;
  OursOnHosts ours_;
  const MpiPeer mpi_;
  Placement placement_;
  std::unique_ptr<GlooPeer> gloo_;
};

}  // namespace

void use_own_core(int rank) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(rank, &set);
  sched_setaffinity(0, sizeof set, &set);
}

std::vector<CaseReadings> run_hosts(const World& world, const HostsOptions& options) {
  if (world.size() <= options.cores) use_own_core(world.rank());
  return HostsSuite(world, options).run();
}

}  // namespace hvd::bench
