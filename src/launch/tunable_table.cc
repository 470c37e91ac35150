#include "launch/tunable_table.h"

namespace hvd::launch {
namespace {

using Id = TunableId;
using Kind = TunableKind;

constexpr auto kHidden = FlagVisibility::kHidden;
constexpr auto kObsolete = FlagVisibility::kObsolete;

constexpr std::string_view kTuning = "Tuning";
constexpr std::string_view kAutotune = "Autotuning";
constexpr std::string_view kTimeline = "Timeline";
constexpr std::string_view kStall = "Stall check";
constexpr std::string_view kLibrary = "Libraries";
constexpr std::string_view kLogging = "Logging";

std::vector<TunableInfo> tuning_rows() {
  return {
      {Id::kFusionThreshold,
       "fusion_threshold_mb",
       kTuning,
       Kind::kMebibytes,
       {{"--fusion-threshold-mb"}},
       {"params", "fusion_threshold_mb"},
       "HOROVOD_FUSION_THRESHOLD",
       "most MiB of tensors in one batch; 0 turns fusion off",
       {0, 1 << 20}},
      {Id::kCycleTime,
       "cycle_time_ms",
       kTuning,
       Kind::kDecimal,
       {{"--cycle-time-ms"}},
       {"params", "cycle_time_ms"},
       "HOROVOD_CYCLE_TIME",
       "least milliseconds between two batches"},
      {Id::kCacheCapacity,
       "cache_capacity",
       kTuning,
       Kind::kInteger,
       {{"--cache-capacity"}},
       {"params", "cache_capacity"},
       "HOROVOD_CACHE_CAPACITY",
       "how many agreed operations are remembered; 0 turns the cache off"},
      {Id::kHierarchicalAllreduce,
       "hierarchical_allreduce",
       kTuning,
       Kind::kSwitch,
       {{"--hierarchical-allreduce", true}, {"--no-hierarchical-allreduce", false}},
       {"params", "hierarchical_allreduce"},
       "HOROVOD_HIERARCHICAL_ALLREDUCE",
       "allreduce in two levels, inside the host and between hosts"},
      {Id::kHierarchicalAllgather,
       "hierarchical_allgather",
       kTuning,
       Kind::kSwitch,
       {{"--hierarchical-allgather", true}, {"--no-hierarchical-allgather", false}},
       {"params", "hierarchical_allgather"},
       "HOROVOD_HIERARCHICAL_ALLGATHER",
       "allgather in two levels"},
      {Id::kTorusAllreduce,
       "torus_allreduce",
       kTuning,
       Kind::kSwitch,
       {{"--torus-allreduce", true}, {"--no-torus-allreduce", false}},
       {"params", "torus_allreduce"},
       "HOROVOD_TORUS_ALLREDUCE",
       "allreduce over a torus of hosts and local ranks"},
  };
}

std::vector<TunableInfo> autotune_rows() {
  return {
      {Id::kAutotune,
       "autotune",
       kAutotune,
       Kind::kSwitch,
       {{"--autotune", true}, {"--no-autotune", false, kHidden}},
       {"autotune", "enabled", false, false},
       "HOROVOD_AUTOTUNE",
       "look for the best tuning parameters while training"},
      {Id::kAutotuneLogFile,
       "autotune_log_file",
       kAutotune,
       Kind::kText,
       {{"--autotune-log-file"}},
       {"autotune", "log_file"},
       "HOROVOD_AUTOTUNE_LOG",
       "write what was tried to this CSV file"},
      {Id::kAutotuneWarmupSamples,
       "autotune_warmup_samples",
       kAutotune,
       Kind::kInteger,
       {{"--autotune-warmup-samples"}},
       {"autotune", "warmup_samples"},
       "HOROVOD_AUTOTUNE_WARMUP_SAMPLES",
       "samples to throw away first"},
      {Id::kAutotuneStepsPerSample,
       "autotune_steps_per_sample",
       kAutotune,
       Kind::kInteger,
       {{"--autotune-steps-per-sample"}},
       {"autotune", "steps_per_sample"},
       "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE",
       "steps that make one sample"},
      {Id::kAutotuneBayesOptMaxSamples,
       "autotune_bayes_opt_max_samples",
       kAutotune,
       Kind::kInteger,
       {{"--autotune-bayes-opt-max-samples"}},
       {"autotune", "bayes_opt_max_samples"},
       "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES",
       "samples after which the search ends"},
      {Id::kAutotuneGaussianProcessNoise,
       "autotune_gaussian_process_noise",
       kAutotune,
       Kind::kDecimal,
       {{"--autotune-gaussian-process-noise"}},
       {"autotune", "gaussian_process_noise"},
       "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE",
       "how noisy the samples are, from 0 to 1",
       {0, 1}},
  };
}

std::vector<TunableInfo> observation_rows() {
  return {
      {Id::kTimelineFilename,
       "timeline_filename",
       kTimeline,
       Kind::kText,
       {{"--timeline-filename"}},
       {"timeline", "filename"},
       "HOROVOD_TIMELINE",
       "record a timeline in this file"},
      {Id::kTimelineMarkCycles,
       "timeline_mark_cycles",
       kTimeline,
       Kind::kSwitch,
       {{"--timeline-mark-cycles", true}, {"--no-timeline-mark-cycles", false, kHidden}},
       {"timeline", "mark_cycles"},
       "HOROVOD_TIMELINE_MARK_CYCLES",
       "mark the cycles in it"},
      {Id::kStallCheckDisable,
       "no_stall_check",
       kStall,
       Kind::kSwitch,
       {{"--no-stall-check", true}, {"--stall-check", false, kHidden}},
       {"stall_check", "enabled", true, true},
       "HOROVOD_STALL_CHECK_DISABLE",
       "do not report ranks that wait for others"},
      {Id::kStallWarningTime,
       "stall_check_warning_time_seconds",
       kStall,
       Kind::kInteger,
       {{"--stall-check-warning-time-seconds"}},
       {"stall_check", "warning_time_seconds"},
       "HOROVOD_STALL_CHECK_TIME_SECONDS",
       "report them after this time"},
      {Id::kStallShutdownTime,
       "stall_check_shutdown_time_seconds",
       kStall,
       Kind::kInteger,
       {{"--stall-check-shutdown-time-seconds"}},
       {"stall_check", "shutdown_time_seconds"},
       "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS",
       "end the job after this time; 0: never"},
  };
}

std::vector<TunableInfo> library_rows() {
  return {
      {Id::kMpiThreadsDisable,
       "mpi_threads_disable",
       kLibrary,
       Kind::kSwitch,
       {{"--mpi-threads-disable", true}, {"--no-mpi-threads-disable", false, kHidden}},
       {"library_options", "mpi_threads_disable"},
       "HOROVOD_MPI_THREADS_DISABLE",
       "start MPI without threads"},
      {Id::kNumNcclStreams,
       "num_nccl_streams",
       kLibrary,
       Kind::kInteger,
       {{"--num-nccl-streams"}},
       {"library_options", "num_nccl_streams"},
       "HOROVOD_NUM_NCCL_STREAMS",
       "streams for NCCL"},
      {Id::kThreadAffinity,
       "thread_affinity",
       kLibrary,
       Kind::kInteger,
       {{"--thread-affinity"}},
       {"library_options", "thread_affinity"},
       "HOROVOD_THREAD_AFFINITY",
       "core of the background thread"},
      {Id::kGlooTimeout,
       "gloo_timeout_seconds",
       kLibrary,
       Kind::kInteger,
       {{"--gloo-timeout-seconds"}},
       {"library_options", "gloo_timeout_seconds"},
       "HOROVOD_GLOO_TIMEOUT_SECONDS",
       "how long workers wait for each other at init"},
      {Id::kLogLevel,
       "log_level",
       kLogging,
       Kind::kLogLevel,
       {{"--log-level"}},
       {"logging", "level"},
       "HOROVOD_LOG_LEVEL",
       "TRACE, DEBUG, INFO, WARNING, ERROR or FATAL"},
      {Id::kLogHideTime,
       "log_hide_timestamp",
       kLogging,
       Kind::kSwitch,
       {{"--log-without-timestamp", true, kHidden},
        {"--log-with-timestamp", false, kHidden},
        {"--log-hide-timestamp", true, kObsolete},
        {"--no-log-hide-timestamp", false, kObsolete}},
       {"logging", "with_timestamp", true},
       "HOROVOD_LOG_HIDE_TIME",
       "no time in the log lines of the core"},
  };
}

}  // namespace

std::span<const TunableInfo> tunable_table() {
  static const std::vector<TunableInfo> table = [] {
    std::vector<TunableInfo> rows;
    for (auto part : {tuning_rows, autotune_rows, observation_rows, library_rows}) {
      for (TunableInfo& row : part()) rows.push_back(std::move(row));
    }
    return rows;
  }();
  return table;
}

const TunableInfo& tunable_info(TunableId id) { return tunable_table()[static_cast<size_t>(id)]; }

}  // namespace hvd::launch
