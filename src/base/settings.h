// settings.h - every HOROVOD_* variable of the core, typed, read once at init.
// The table in settings.cc is the only list: name, type, default, range, one sentence. Docs come
// from it. A value that was valid for the original keeps its meaning; garbage is an error naming
// the variable.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hvd {

enum class LogLevel : int { kTrace, kDebug, kInfo, kWarning, kError, kFatal };
// The codes are those of hvd_progress.
enum class ProgressPolicy : int { kAuto = 1, kWaiter = 2, kBackground = 3 };

struct Settings {
  // engine
  int64_t fusion_threshold_bytes = 128 << 20;
  double cycle_time_ms = 1.0;
  int64_t cache_capacity = 1024;
  ProgressPolicy progress = ProgressPolicy::kAuto;  // HOROVOD_PROGRESS: auto, waiter, background
  bool dynamic_process_sets = false;
  bool elastic = false;
  std::chrono::seconds elastic_timeout{600};  // HOROVOD_ELASTIC_TIMEOUT
  std::vector<int> thread_affinity;           // HOROVOD_THREAD_AFFINITY
  // stalls and failures
  bool stall_check_disable = false;
  std::chrono::seconds stall_check_time{60};
  std::chrono::seconds stall_shutdown_time{0};  // 0: never; never less than the check time
  // HOROVOD_FROZEN_PEER_TIME_SECONDS (float); 0: never
  std::chrono::milliseconds frozen_peer_time{60000};
  std::chrono::seconds rendezvous_timeout{30};  // HOROVOD_GLOO_TIMEOUT_SECONDS
  // observation
  std::string timeline;  // path, "DYNAMIC" or empty
  bool timeline_mark_cycles = false;
  int64_t timeline_max_bytes = int64_t{1} << 30;  // HOROVOD_TIMELINE_MAX_BYTES
  LogLevel log_level = LogLevel::kWarning;
  bool log_hide_time = false;
  std::string failure_note;  // HOROVOD_FAILURE_NOTE; see failure_note.h
  // devices
  int64_t nccl_streams = 1;       // HOROVOD_NUM_NCCL_STREAMS
  bool async_completion = false;  // HOROVOD_ENABLE_ASYNC_COMPLETION
  // memory
  int64_t shm_buffer_bytes = 0;  // HOROVOD_SHM_BUFFER_BYTES per rank; 0: size of memory
  // waiting: -1 = decide from ranks and cores
  int64_t spin_count = -1;   // HOROVOD_SPIN_COUNT
  int64_t yield_count = -1;  // HOROVOD_YIELD_COUNT
  // autotuning; rank 0's values count
  bool autotune = false;
  std::string autotune_log;
  std::string autotune_profile;
  int64_t autotune_warmup_samples = 3;
  int64_t autotune_steps_per_sample = 10;
  int64_t autotune_max_samples = 20;  // HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES
  double autotune_noise = 0.8;        // HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE

  std::vector<std::string> warnings;  // to be logged once the log is set up
  bool operator==(const Settings&) const = default;
};

// How settings read variables: the process environment, or a table in tests. An empty or blank
// value counts as unset.
using Environment = std::function<std::optional<std::string>(const char* name)>;
Environment process_environment();

Result<Settings> read_settings(const Environment& environment);

// Whether read_settings() takes this value of this variable. Errors do not name the variable.
Status check_setting(std::string_view name, const std::string& value);

// One row of the table, for docs and `--help`.
struct SettingInfo {
  std::string name, type, default_value, meaning, group;
};
std::vector<SettingInfo> describe_settings();

}  // namespace hvd
