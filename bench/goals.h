// goals.h - every figure the project promises, in one table. The report judges by it and nothing
// else. A ratio is "how many times quicker we are than `versus`", the median over near rounds.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

namespace hvd::bench {

inline constexpr std::string_view kOtherMpi = "<other mpi>";  // an MPI named with --mpirun
inline constexpr std::string_view kLimit = "<limit>";         // share of the limit that we reach
inline constexpr std::string_view kValue = "<value>";         // our own value, at most

struct Goal {
  std::string_view bench;
  std::string_view metric;
  std::string_view ours;
  std::string_view versus;  // a peer, another entrant of ours, or one of the names above
  double figure;            // at least; for kValue at most
  int np_min = 2;
  int np_max = 2;
  uint64_t bytes_min = 0;
  uint64_t bytes_max = std::numeric_limits<uint64_t>::max();
  std::string_view part_of_case = {};  // only cases whose name holds this
};

// A case of a Python front end; they have no size, and are told apart by their names.
constexpr Goal front_end_goal(std::string_view bench, std::string_view part_of_case,
                              std::string_view ours, std::string_view versus, double figure) {
  return {.bench = bench,
          .metric = "mean",
          .ours = ours,
          .versus = versus,
          .figure = figure,
          .np_min = 1,
          .part_of_case = part_of_case};
}

constexpr Goal torch_goal(std::string_view part_of_case, std::string_view ours,
                          std::string_view versus, double figure) {
  return front_end_goal("torch", part_of_case, ours, versus, figure);
}

constexpr Goal tensorflow_goal(std::string_view part_of_case, std::string_view ours,
                               std::string_view versus, double figure) {
  return front_end_goal("tensorflow", part_of_case, ours, versus, figure);
}

constexpr Goal jax_goal(std::string_view part_of_case, std::string_view ours,
                        std::string_view versus, double figure) {
  return front_end_goal("jax", part_of_case, ours, versus, figure);
}

// Two hosts; `part_of_case` says how many ranks on each, and over which link.
constexpr Goal hosts_goal(std::string_view part_of_case, std::string_view ours,
                          std::string_view versus, double figure, uint64_t bytes_min,
                          uint64_t bytes_max) {
  return {.bench = "hosts",
          .metric = "mean",
          .ours = ours,
          .versus = versus,
          .figure = figure,
          .np_min = 2,
          .np_max = 4,
          .bytes_min = bytes_min,
          .bytes_max = bytes_max,
          .part_of_case = part_of_case};
}

inline constexpr uint64_t kKib = 1024;
inline constexpr uint64_t kMib = 1024 * kKib;

// clang-format off
inline constexpr Goal kGoals[] = {
    // The collective layer alone.
    {"allreduce", "mean", "layer", "openmpi", 4.0, 2, 2, 4, 4},
    {"allreduce", "mean", "layer", "openmpi", 1.7, 2, 2, 256, 4 * kKib},
    {"allreduce", "mean", "layer", "openmpi", 7.0, 2, 2, 16 * kKib, 16 * kKib},
    {"allreduce", "mean", "layer", "openmpi", 4.0, 2, 2, 64 * kKib, 64 * kKib},
    {"allreduce", "mean", "layer", "openmpi", 2.5, 2, 2, 256 * kKib, 256 * kKib},
    {"allreduce", "mean", "layer", "openmpi", 2.0, 2, 2, 1 * kMib, 16 * kMib},
    {"allreduce", "mean", "layer", "openmpi", 4.5, 2, 2, 64 * kMib, 256 * kMib},
    {"allreduce", "mean", "layer", "gloo", 5.0},
    {"allreduce", "mean", "layer", "mpich", 2.5},
    {"allreduce", "mean", "layer", kOtherMpi, 1.7},
    // Negotiated, through the C ABI, one call. "Within 10 %": at most 1.1 times the layer's time.
    {"allreduce", "mean", "prepared", "openmpi", 2.0, 2, 2, 4, 4},
    {"allreduce", "mean", "by name", "openmpi", 1.6, 2, 2, 4, 4},
    {"allreduce", "mean", "prepared", "openmpi", 1.5, 2, 2, 256, 256},
    {"allreduce", "mean", "by name", "openmpi", 1.5, 2, 2, 256, 256},
    {"allreduce", "mean", "prepared", "openmpi", 2.2, 2, 2, 4 * kKib, 4 * kKib},
    {"allreduce", "mean", "by name", "openmpi", 2.2, 2, 2, 4 * kKib, 4 * kKib},
    {"allreduce", "mean", "prepared", "layer", 1 / 1.1, 2, 2, 64 * kKib},
    {"allreduce", "mean", "by name", "layer", 1 / 1.1, 2, 2, 64 * kKib},
    // More ranks than cores; Open MPI yields when idle.
    {"allreduce", "mean", "layer", "openmpi", 1.7, 4, 8, 4, 4},
    {"allreduce", "mean", "layer", "openmpi", 3.3, 4, 8, 1 * kKib, 64 * kKib},
    {"allreduce", "mean", "layer", "openmpi", 2.2, 4, 8, 1 * kMib, 1 * kMib},
    {"allreduce", "p99", "layer", kValue, 50.0, 8, 8, 4, 4},
    {"allreduce", "p99", "prepared", kValue, 50.0, 8, 8, 4, 4},
    // The ResNet-50 gradients. 161 submissions take at most 1.15 times as long as one group.
    {"gradients", "mean", "group", "openmpi fused", 6.5},
    {"gradients", "mean", "group shared", kLimit, 0.9},
    {"gradients", "mean", "separate", "group", 1 / 1.15},
    {"ops", "mean", "prepared", "openmpi", 1.5, 2, 2, 1 * kMib, 1 * kMib},
    // Two hosts, one rank each, over a quick link.
    hosts_goal("2x1 veth", "layer", "openmpi", 1.4, 4, 1 * kKib),
    hosts_goal("2x1 veth", "layer", "openmpi", 2.0, 4 * kKib, 4 * kKib),
    hosts_goal("2x1 veth", "layer", "openmpi", 1.7, 64 * kKib, 256 * kKib),
    hosts_goal("2x1 veth", "layer", "openmpi", 1.25, 1 * kMib, 16 * kMib),
    hosts_goal("2x1 veth", "layer", "openmpi", 2.4, 64 * kMib, 64 * kMib),
    hosts_goal("2x1 veth", "layer", "gloo", 2.2, 16 * kMib, 64 * kMib),
    hosts_goal("2x1 veth", "layer", "iperf3 --bidir", 1.2, 64 * kMib, 64 * kMib),
    hosts_goal("2x1 veth", "prepared", "openmpi", 1.0, 4, 1 * kKib),
    hosts_goal("2x1 veth", "gloo engine", "gloo", 0.95, 64 * kKib, 64 * kMib),
    hosts_goal("2x1 veth", "mpi engine", "openmpi", 0.95, 1 * kMib, 64 * kMib),
    // Slow links: the share of what TCP carries there.
    hosts_goal("2x1 1gbit", "prepared", kLimit, 0.95, 64 * kMib, 64 * kMib),
    hosts_goal("2x1 10gbit", "prepared", kLimit, 0.95, 64 * kMib, 64 * kMib),
    hosts_goal("2x2 1gbit", "prepared", kLimit, 0.93, 16 * kMib, 16 * kMib),
    hosts_goal("2x1 1gbit", "float16 wire", "prepared", 1.85, 16 * kMib, 64 * kMib),
    // What protection costs: small messages 15 %, objects 5 %, numbers under TLS a share of the plain rate.
    hosts_goal("protection small", "default", "TLS=0", 1 / 1.15, 4, 1 * kKib),
    hosts_goal("protection object", "default", "TLS=0", 1 / 1.05, 0, 1 * kMib),
    hosts_goal("protection numbers veth", "TLS=1", "TLS=0", 0.6, 16 * kMib, 64 * kMib),
    hosts_goal("protection numbers 10gbit", "TLS=1", "TLS=0", 0.95, 64 * kMib, 64 * kMib),
    {.bench = "launch", .metric = "mean", .ours = "horovodrun", .versus = "openmpi", .figure = 10.0, .np_max = 8, .part_of_case = "np="},
    {.bench = "launch", .metric = "mean", .ours = "horovodrun", .versus = "mpich", .figure = 3.0, .np_max = 8, .part_of_case = "np="},
    {.bench = "launch", .metric = "mean", .ours = "horovodrun", .versus = "openmpi", .figure = 1.5, .part_of_case = "ssh"},
    {"launch", "mean", "hvd_init", kValue, 50, 2, 2},
    {"launch", "mean", "hvd_init", kValue, 80, 8, 8},
    {"launch", "mean", "hvd_init", kValue, 150, 16, 16},
    {"idle", "share", "horovod", kValue, 0.2, 2, 8},
    // The PyTorch front end. Where the limit is a figure to stay below, 1 means that we do.
    torch_goal("latency: 4 B", "hvd.allreduce_", "gloo", 40),
    torch_goal("latency: beyond the C call", "hvd.allreduce_", kLimit, 1),
    torch_goal("averaging:", "optimizer.synchronize", "gloo best", 7),
    torch_goal("averaging:", "hvd.grouped_allreduce_", "gloo best", 7),
    torch_goal("exposed:", "horovod", "DDP gloo", 2),
    torch_goal("exposed:", "DDP horovod", "DDP gloo", 2),
    torch_goal("share: ResNet-50 list", "horovod", kLimit, 0.88),
    torch_goal("share: MLP", "horovod", kLimit, 0.90),
    torch_goal("share: CNN", "horovod", kLimit, 0.96),
    torch_goal("share: transformer", "horovod", kLimit, 0.96),
    torch_goal("throughput: ResNet-50 list", "horovod", "DDP gloo", 1.7),
    torch_goal("throughput: MLP", "horovod", "DDP gloo", 1.6),
    torch_goal("throughput: CNN", "horovod", "DDP gloo", 1.03),
    torch_goal("throughput: transformer", "horovod", "DDP gloo", 1.08),
    torch_goal("overhead: 161 parameters", "hooks and step", kLimit, 1),
    torch_goal("start: import", "horovod.torch", kLimit, 1),
    torch_goal("start: init", "hvd.init", kLimit, 1),
    torch_goal("memory:", "horovod", kLimit, 1),
    // The TensorFlow front end.
    tensorflow_goal("node:", "one allreduce", kLimit, 1),
    tensorflow_goal("sync:", "horovod", "MWMS ring", 5),
    tensorflow_goal("sync:", "horovod", "MWMS ring, 25 MiB packs", 5),
    tensorflow_goal("share: CNN", "horovod", kLimit, 0.95),
    tensorflow_goal("share: transformer", "horovod", kLimit, 0.97),
    tensorflow_goal("share: MLP", "horovod", kLimit, 0.88),
    tensorflow_goal("memory:", "horovod", kLimit, 1),
    // Microseconds and milliseconds that we add ourselves; psum of JAX over Gloo; the share of no communication.
    jax_goal("call", "one allreduce", kValue, 5.0),
    jax_goal("averaging", "hvd.allreduce", "psum over gloo", 5.0),
    jax_goal("training: MLP", "horovod", "psum over gloo", 1.5),
    jax_goal("training: transformer", "horovod", "psum over gloo", 1.1),
    jax_goal("training: MLP", "horovod", kLimit, 0.88),
    jax_goal("training: transformer", "horovod", kLimit, 0.96),
    jax_goal("start: import", "horovod.jax", kValue, 150.0),
    // Jobs that Spark starts.
    {.bench = "spark", .metric = "mean", .ours = "spark.run", .versus = kLimit, .figure = 1, .np_max = 8, .part_of_case = "start: init"},
    {.bench = "spark", .metric = "mean", .ours = "spark.run", .versus = "horovodrun", .figure = 0.97, .part_of_case = "throughput:"},
    {.bench = "spark", .metric = "mean", .ours = "TorchEstimator", .versus = "pyarrow", .figure = 0.8, .np_min = 1, .part_of_case = "feeding: clock"},
    // The device path, on stand-ins: microseconds and milliseconds that we add ourselves; pipelined staging.
    front_end_goal("devices", "submission:", "horovod", kValue, 3.0),
    front_end_goal("devices", "step:", "horovod", kValue, 1.5),
    front_end_goal("devices", "overlap:", "horovod", kValue, 5.0),
    front_end_goal("devices", "staging: 64 MiB", "pipelined", "copy, reduce, copy", 1.5),
    front_end_goal("devices", "no driver:", "horovod", kValue, 1000.0),
    // The MXNet front end.
    front_end_goal("mxnet", "push:", "beyond the C call", kLimit, 1),
    front_end_goal("mxnet", "share: CNN", "horovod", kLimit, 0.95),
    front_end_goal("mxnet", "kvstore: CNN", "horovod", "dist_sync", 1.2),
    front_end_goal("mxnet", "import:", "horovod.mxnet", kLimit, 1),
};
// clang-format on

}  // namespace hvd::bench
