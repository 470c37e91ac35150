#include "launch/options/tunable_table.h"

namespace hvd::launch {
namespace {

using Kind = TunableKind;

constexpr auto kShownFlag = FlagVisibility::kShown;
constexpr auto kHiddenFlag = FlagVisibility::kHidden;
constexpr auto kObsoleteFlag = FlagVisibility::kObsolete;

constexpr std::string_view kTuning = "Tuning";
constexpr std::string_view kTimeline = "Timeline";
constexpr std::string_view kStall = "Stall check";
constexpr std::string_view kLibrary = "Libraries";
constexpr std::string_view kLogging = "Logging";

std::vector<TunableInfo> tuning_rows() {
  return {
      {TunableId::kFusionThreshold,
       "fusion_threshold_mb",
       kTuning,
       Kind::kMebibytes,
       {{"--fusion-threshold-mb"}},
       {"params", "fusion_threshold_mb"},
       "HOROVOD_FUSION_THRESHOLD",
       {0, 1 << 20}},
      {TunableId::kCycleTime,
       "cycle_time_ms",
       kTuning,
       Kind::kDecimal,
       {{"--cycle-time-ms"}},
       {"params", "cycle_time_ms"},
       "HOROVOD_CYCLE_TIME"},
      {TunableId::kCacheCapacity,
       "cache_capacity",
       kTuning,
       Kind::kInteger,
       {{"--cache-capacity"}},
       {"params", "cache_capacity"},
       "HOROVOD_CACHE_CAPACITY"},
      {TunableId::kHierarchicalAllreduce,
       "hierarchical_allreduce",
       kTuning,
       Kind::kSwitch,
       {{"--hierarchical-allreduce", true}, {"--no-hierarchical-allreduce", false}},
       {"params", "hierarchical_allreduce"},
       "HOROVOD_HIERARCHICAL_ALLREDUCE"},
      {TunableId::kHierarchicalAllgather,
       "hierarchical_allgather",
       kTuning,
       Kind::kSwitch,
       {{"--hierarchical-allgather", true}, {"--no-hierarchical-allgather", false}},
       {"params", "hierarchical_allgather"},
       "HOROVOD_HIERARCHICAL_ALLGATHER"},
      {TunableId::kTorusAllreduce,
       "torus_allreduce",
       kTuning,
       Kind::kSwitch,
       {{"--torus-allreduce", true}, {"--no-torus-allreduce", false}},
       {"params", "torus_allreduce"},
       "HOROVOD_TORUS_ALLREDUCE"},
  };
}

std::vector<TunableInfo> autotune_rows() {
  return {
      {TunableId::kAutotune,
       "autotune",
       kTuning,
       Kind::kSwitch,
       {{"--autotune", true}, {"--no-autotune", false, kHiddenFlag}},
       {"autotune", "enabled", false, false},
       "HOROVOD_AUTOTUNE"},
      {TunableId::kAutotuneLogFile,
       "autotune_log_file",
       kTuning,
       Kind::kText,
       {{"--autotune-log-file"}},
       {"autotune", "log_file"},
       "HOROVOD_AUTOTUNE_LOG"},
      {TunableId::kAutotuneProfile,
       "autotune_profile",
       kTuning,
       Kind::kText,
       {{"--autotune-profile"}},
       {"autotune", "profile"},
       "HOROVOD_AUTOTUNE_PROFILE"},
      {TunableId::kAutotuneWarmupSamples,
       "autotune_warmup_samples",
       kTuning,
       Kind::kInteger,
       {{"--autotune-warmup-samples"}},
       {"autotune", "warmup_samples"},
       "HOROVOD_AUTOTUNE_WARMUP_SAMPLES"},
      {TunableId::kAutotuneStepsPerSample,
       "autotune_steps_per_sample",
       kTuning,
       Kind::kInteger,
       {{"--autotune-steps-per-sample"}},
       {"autotune", "steps_per_sample"},
       "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE"},
      {TunableId::kAutotuneBayesOptMaxSamples,
       "autotune_bayes_opt_max_samples",
       kTuning,
       Kind::kInteger,
       {{"--autotune-bayes-opt-max-samples"}},
       {"autotune", "bayes_opt_max_samples"},
       "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES"},
      {TunableId::kAutotuneGaussianProcessNoise,
       "autotune_gaussian_process_noise",
       kTuning,
       Kind::kDecimal,
       {{"--autotune-gaussian-process-noise"}},
       {"autotune", "gaussian_process_noise"},
       "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE"},
  };
}

std::vector<TunableInfo> observation_rows() {
  return {
      {TunableId::kTimelineFilename,
       "timeline_filename",
       kTimeline,
       Kind::kText,
       {{"--timeline-filename"}},
       {"timeline", "filename"},
       "HOROVOD_TIMELINE"},
      {TunableId::kTimelineMarkCycles,
       "timeline_mark_cycles",
       kTimeline,
       Kind::kSwitch,
       {{"--timeline-mark-cycles", true}, {"--no-timeline-mark-cycles", false, kHiddenFlag}},
       {"timeline", "mark_cycles"},
       "HOROVOD_TIMELINE_MARK_CYCLES"},
      {TunableId::kStallCheckDisable,
       "no_stall_check",
       kStall,
       Kind::kSwitch,
       {{"--no-stall-check", true}, {"--stall-check", false, kHiddenFlag}},
       {"stall_check", "enabled", true, true},
       "HOROVOD_STALL_CHECK_DISABLE"},
      {TunableId::kStallWarningTime,
       "stall_check_warning_time_seconds",
       kStall,
       Kind::kInteger,
       {{"--stall-check-warning-time-seconds"}},
       {"stall_check", "warning_time_seconds"},
       "HOROVOD_STALL_CHECK_TIME_SECONDS"},
      {TunableId::kStallShutdownTime,
       "stall_check_shutdown_time_seconds",
       kStall,
       Kind::kInteger,
       {{"--stall-check-shutdown-time-seconds"}},
       {"stall_check", "shutdown_time_seconds"},
       "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"},
  };
}

std::vector<TunableInfo> library_rows() {
  return {
      {TunableId::kMpiThreadsDisable,
       "mpi_threads_disable",
       kLibrary,
       Kind::kSwitch,
       {{"--mpi-threads-disable", true}, {"--no-mpi-threads-disable", false, kHiddenFlag}},
       {"library_options", "mpi_threads_disable"},
       "HOROVOD_MPI_THREADS_DISABLE"},
      {TunableId::kNumNcclStreams,
       "num_nccl_streams",
       kLibrary,
       Kind::kInteger,
       {{"--num-nccl-streams"}},
       {"library_options", "num_nccl_streams"},
       "HOROVOD_NUM_NCCL_STREAMS"},
      {TunableId::kThreadAffinity,
       "thread_affinity",
       kLibrary,
       Kind::kInteger,
       {{"--thread-affinity"}},
       {"library_options", "thread_affinity"},
       "HOROVOD_THREAD_AFFINITY"},
      {TunableId::kGlooTimeout,
       "gloo_timeout_seconds",
       kLibrary,
       Kind::kInteger,
       {{"--gloo-timeout-seconds"}},
       {"library_options", "gloo_timeout_seconds"},
       "HOROVOD_GLOO_TIMEOUT_SECONDS"},
      {TunableId::kLogLevel,
       "log_level",
       kLogging,
       Kind::kLogLevel,
       {{"--log-level"}},
       {"logging", "level"},
       "HOROVOD_LOG_LEVEL"},
      {TunableId::kLogHideTime,
       "log_hide_timestamp",
       kLogging,
       Kind::kSwitch,
       {{"--log-without-timestamp", true},
        {"--log-with-timestamp", false, kShownFlag, "begin log lines with the time (the default)"},
        {"--log-hide-timestamp", true, kObsoleteFlag},
        {"--no-log-hide-timestamp", false, kObsoleteFlag}},
       {"logging", "with_timestamp", true},
       "HOROVOD_LOG_HIDE_TIME"},
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
