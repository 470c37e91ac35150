#include "base/settings.h"

#include <cstdlib>
#include <iterator>
#include <span>
#include <string_view>

#include "base/parse.h"
#include "base/text.h"

namespace hvd {
namespace {

enum class Type { kFlag, kSwitch, kInteger, kDecimal, kChoice, kText, kIntegerList };

// A parsed value: the member that fits the row's type.
struct Value {
  bool on = false;
  int64_t integer = 0;
  double decimal = 0;
  size_t choice = 0;
  std::string text;
  std::vector<int> list;
};
using Store = void (*)(Settings&, const Value&);

struct Row {
  const char* name;
  Type type;
  const char* default_value;
  const char* meaning;
  Store store = nullptr;  // null: checked, but without effect
  Range<int64_t> integers{};
  Range<double> decimals{};
  std::span<const std::string_view> choices{};
};

// "flag" is on when above 0 and "switch" when not 0, because the original treats them so.
constexpr Row flag(const char* name, const char* meaning, Store store = nullptr) {
  return {
      .name = name, .type = Type::kFlag, .default_value = "0", .meaning = meaning, .store = store};
}
constexpr Row on_off(const char* name, const char* default_value, const char* meaning,
                     Store store = nullptr) {
  return {name, Type::kSwitch, default_value, meaning, store};
}
constexpr Row integer(const char* name, Range<int64_t> range, const char* default_value,
                      const char* meaning, Store store = nullptr) {
  return {name, Type::kInteger, default_value, meaning, store, range};
}
constexpr Row decimal(const char* name, Range<double> range, const char* default_value,
                      const char* meaning, Store store = nullptr) {
  return {name, Type::kDecimal, default_value, meaning, store, {}, range};
}
constexpr Row choice(const char* name, std::span<const std::string_view> choices,
                     const char* default_value, const char* meaning, Store store = nullptr) {
  return {name, Type::kChoice, default_value, meaning, store, {}, {}, choices};
}
constexpr Row text(const char* name, const char* meaning, Store store = nullptr) {
  return {
      .name = name, .type = Type::kText, .default_value = "", .meaning = meaning, .store = store};
}

constexpr Range<int64_t> kNotNegative{.least = 0};
constexpr Range<int64_t> kSeconds{.least = 0, .most = INT32_MAX};
// Of looks and yields, which are added up; -1: decided elsewhere.
constexpr Range<int64_t> kCount{.least = -1, .most = 1000000000};
// A float of seconds must still fit a count of nanoseconds.
constexpr Range<double> kDecimalSeconds{.least = 0, .most = 1e9};
constexpr Range<double> kDecimalNotNegative{.least = 0};

// The order is that of the enumerators.
constexpr std::string_view kLogLevels[] = {"trace", "debug", "info", "warning", "error", "fatal"};
// Common in scripts for the original, which took any other word for its default.
constexpr std::string_view kFormerLogLevels[] = {"warn", "off"};
constexpr std::string_view kProgressPolicies[] = {"auto", "waiter", "background"};
constexpr std::string_view kControllers[] = {"auto", "native", "mpi", "gloo"};
constexpr std::string_view kCpuOperations[] = {"auto", "native", "mpi", "gloo", "ccl"};
constexpr std::string_view kBooleans[] = {"true", "false", "1", "0"};

constexpr Row kEngineRows[] = {
    integer("HOROVOD_CACHE_CAPACITY", {.least = 0, .most = UINT32_MAX}, "1024",
            "Agreed operations that each process set remembers; 0 turns the response cache off.",
            [](Settings& s, const Value& v) { s.cache_capacity = v.integer; }),
    choice("HOROVOD_PROGRESS", kProgressPolicies, "auto",
           "Who makes operations advance: `waiter` only calls into the library, `background` the "
           "background thread, `auto` the waiting thread where there is one.",
           [](Settings& s, const Value& v) {
             s.progress = static_cast<ProgressPolicy>(v.choice + 1);
           }),
    on_off("HOROVOD_DYNAMIC_PROCESS_SETS", "0", "Allow to add and remove process sets after init.",
           [](Settings& s, const Value& v) { s.dynamic_process_sets = v.on; }),
    flag("HOROVOD_ELASTIC", "The job may change its size; set by the launcher.",
         [](Settings& s, const Value& v) { s.elastic = v.on; }),
    integer(
        "HOROVOD_ELASTIC_TIMEOUT", {.least = 1, .most = INT32_MAX}, "600",
        "Seconds that an elastic job waits for enough workers (`--elastic-timeout`).",
        [](Settings& s, const Value& v) { s.elastic_timeout = std::chrono::seconds(v.integer); }),
    {.name = "HOROVOD_THREAD_AFFINITY",
     .type = Type::kIntegerList,
     .default_value = "",
     .meaning =
         "Cores to pin the background threads to: the process with local rank i takes entry i.",
     .store = [](Settings& s, const Value& v) { s.thread_affinity = v.list; }},
};

constexpr Row kFailureRows[] = {
    flag("HOROVOD_STALL_CHECK_DISABLE", "Do not look for operations that wait for missing ranks.",
         [](Settings& s, const Value& v) { s.stall_check_disable = v.on; }),
    integer(
        "HOROVOD_STALL_CHECK_TIME_SECONDS", kSeconds, "60",
        "Age at which a waiting operation is reported, and how often to look.",
        [](Settings& s, const Value& v) { s.stall_check_time = std::chrono::seconds(v.integer); }),
    integer("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", kSeconds, "0",
            "Age at which a waiting operation ends the job; 0, or less than the check time: never.",
            [](Settings& s, const Value& v) {
              s.stall_shutdown_time = std::chrono::seconds(v.integer);
            }),
    on_off(
        "HOROVOD_STALL_STACKS", "1",
        "A rank that a stall report names prints the stacks of its threads. Obeyed by front ends."),
    decimal("HOROVOD_FROZEN_PEER_TIME_SECONDS", kDecimalSeconds, "60",
            "Seconds without a sign of life after which a rank that others wait for is declared "
            "lost; 0: never.",
            [](Settings& s, const Value& v) {
              s.frozen_peer_time =
                  std::chrono::milliseconds(static_cast<int64_t>(v.decimal * 1e3 + 0.5));
            }),
    integer("HOROVOD_GLOO_TIMEOUT_SECONDS", {.least = 1, .most = INT32_MAX}, "30",
            "How long init waits for the other ranks.",
            [](Settings& s, const Value& v) {
              s.rendezvous_timeout = std::chrono::seconds(v.integer);
            }),
};

constexpr Row kObservationRows[] = {
    text("HOROVOD_TIMELINE",
         "File for the timeline, written by rank 0; `DYNAMIC` waits for `start_timeline`.",
         [](Settings& s, const Value& v) { s.timeline = v.text; }),
    flag("HOROVOD_TIMELINE_MARK_CYCLES", "Mark cycles in the timeline.",
         [](Settings& s, const Value& v) { s.timeline_mark_cycles = v.on; }),
    integer("HOROVOD_TIMELINE_MAX_BYTES", {.least = 4096}, "1073741824",
            "Size at which the timeline stops growing; what follows is counted, not written.",
            [](Settings& s, const Value& v) { s.timeline_max_bytes = v.integer; }),
    choice("HOROVOD_LOG_LEVEL", kLogLevels, "warning", "Lowest level that is logged.",
           [](Settings& s, const Value& v) { s.log_level = static_cast<LogLevel>(v.choice); }),
    flag("HOROVOD_LOG_HIDE_TIME", "Leave the time out of log lines.",
         [](Settings& s, const Value& v) { s.log_hide_time = v.on; }),
};

constexpr Row kResourceRows[] = {
    integer(
        "HOROVOD_SHM_BUFFER_BYTES", kNotNegative, "0",
        "Shared memory that each rank reserves for buffers allocated by `hvd_buffer_alloc`; 0: as "
        "much as the machine has, taken page by page as it is used.",
        [](Settings& s, const Value& v) { s.shm_buffer_bytes = v.integer; }),
    integer("HOROVOD_SPIN_COUNT", kCount, "-1",
            "Looks at shared memory before a waiting thread yields its core; -1: decided from the "
            "ranks and cores of the host.",
            [](Settings& s, const Value& v) { s.spin_count = v.integer; }),
    integer(
        "HOROVOD_YIELD_COUNT", kCount, "-1",
        "Yields before a waiting thread sleeps; -1: decided from the ranks and cores of the host.",
        [](Settings& s, const Value& v) { s.yield_count = v.integer; }),
};

// Read while the ranks of several hosts find each other (src/bootstrap, src/net); checked here,
// before anything else happens.
constexpr Range<int64_t> kPort{.least = 1, .most = 65535};
constexpr Row kNetworkRows[] = {
    text("HOROVOD_KEY_FILE",
         "File with the key of the job: 32 bytes or 64 hexadecimal digits, mode 0600, the same on "
         "every host. Needed where neither `horovodrun` nor the launcher carries a key."),
    integer("HOROVOD_KEY_FD", {.least = 0, .most = INT32_MAX}, "",
            "Open descriptor with the key of the job; set by `horovodrun`, wins over the file."),
    text("HOROVOD_STORE_ADDRESSES",
         "Addresses of the store that `horovodrun` serves; set by `horovodrun`."),
    text(
        "HOROVOD_RENDEZVOUS_ADDR",
        "Name or address of rank 0's host, where rank 0 serves the store of a job that was started "
        "by hand."),
    integer("HOROVOD_RENDEZVOUS_PORT", kPort, "", "Its port."),
    text("HOROVOD_GLOO_RENDEZVOUS_ADDR", "The same under the original's name."),
    integer("HOROVOD_GLOO_RENDEZVOUS_PORT", {.least = -1, .most = 65535}, "", "Its port."),
    integer(
        "HOROVOD_STORE_PORT", kPort, "",
        "Port of the store on the first host that the launcher names (`MASTER_ADDR`, the first "
        "node of a Slurm step, pod or SageMaker host), instead of the one that follows from the "
        "job."),
    text("HOROVOD_GLOO_IFACE",
         "Network interfaces to use, separated by commas; unset: all that are up."),
    integer("HOROVOD_TLS", {.least = 0, .most = 2147483647}, "",
            "Unset: control and objects between hosts are encrypted, tensors are not. 1: "
            "everything, with TLS (OpenSSL must be installed; not with MPI as carrier). 0: nothing "
            "but the rendezvous. The same on every rank."),
    decimal("HOROVOD_LOST_HOST_TIME_SECONDS", {.least = 0.5, .most = 86400}, "2.5",
            "How long another host may leave control messages without an acknowledgement before it "
            "counts as lost."),
    text("HOROVOD_TCP_CONGESTION",
         "TCP congestion control between hosts, as in `/proc/sys/net/ipv4/tcp_available_congestion_"
         "control`; unset: that of the system."),
};

// Read by `horovodrun` itself; checked here as well, because its workers inherit them.
constexpr Row kLauncherRows[] = {
    decimal("HOROVOD_TERMINATION_GRACE_SECONDS", {.least = 0, .most = 31536000}, "5",
            "How long workers have between SIGTERM and SIGKILL when `horovodrun` ends them."),
    integer("HOROVOD_START_TIMEOUT", {.least = 1, .most = 31536000}, "",
            "Seconds that workers have to come together; stands in for `--start-timeout`."),
    decimal("HOROVOD_ELASTIC_READY_SECONDS", {.least = 0, .most = 31536000}, "60",
            "How long members of an epoch that broke may keep others waiting before they are "
            "killed."),
    decimal("HOROVOD_ELASTIC_DISCOVERY_SECONDS", {.least = 0.01, .most = 31536000}, "1",
            "How often an elastic job asks which hosts there are."),
    integer("HOROVOD_ELASTIC_FD", {.least = 0, .most = INT32_MAX}, "",
            "Open descriptor between an elastic worker and its launcher; set by `horovodrun`."),
    text("HOROVOD_REMOTE_EXECUTABLE", "Path of `horovodrun` on other hosts; unset: as here."),
    text("HOROVOD_SSH_COMMAND",
         "Program and arguments that take the place of ssh: called with a host and one word to be "
         "read by a shell."),
    text(
        "HOROVOD_RUN_DIRECTORY",
        "Folder that all hosts share, for functions of `horovod.run` that are too large to be sent "
        "(32 MiB)."),
    text("HOROVOD_RUN_FOLDER", "Files of a `horovod.run` on each host; set by it."),
    text("HOROVOD_FAILURE_NOTE",
         "Open descriptor where a rank leaves why its job failed, for the last line of "
         "`horovodrun`, which sets it.",
         [](Settings& s, const Value& v) { s.failure_note = v.text; }),
};

// Read by `src/mpi` when a job begins; checked here as well.
constexpr Row kMpiRows[] = {
    choice("HOROVOD_CONTROLLER", kControllers, "auto",
           "What brings the ranks together: `mpi` asks for MPI, `native` and `gloo` rule it out "
           "(`gloo` also asks for Gloo as carrier of data where the next one says nothing), "
           "`auto` takes it where mpirun has started ranks on several hosts."),
    choice(
        "HOROVOD_CPU_OPERATIONS", kCpuOperations, "auto",
        "What carries data between hosts: `mpi` asks for MPI, `native` takes our own link, `gloo` "
        "the library Gloo where all ranks have it ([gloo.md](gloo.md)) and our own link "
        "elsewhere, `auto` takes MPI where it has brought the ranks together. `ccl` is taken for "
        "`auto`."),
    text("HOROVOD_GLOO_PLUGIN",
         "The file libhorovod_gloo.so; unset: it lies beside the library of horovod."),
    text("HOROVOD_MPI_LIBRARY", "The MPI library, a name or a path; unset: it is looked for."),
    flag("HOROVOD_MPI_THREADS_DISABLE",
         "Ask MPI for MPI_THREAD_SERIALIZED: calls take turns, and the program must make none "
         "meanwhile."),
};

// Rank 0 alone obeys them: it measures, and tells the others.
constexpr Range<int64_t> kSamples{.least = 0, .most = INT32_MAX};
constexpr Row kAutotuneRows[] = {
    flag("HOROVOD_AUTOTUNE", "Look for a better tuning of the engine while the job trains.",
         [](Settings& s, const Value& v) { s.autotune = v.on; }),
    text("HOROVOD_AUTOTUNE_LOG", "CSV file for what was tried, written by rank 0.",
         [](Settings& s, const Value& v) { s.autotune_log = v.text; }),
    text("HOROVOD_AUTOTUNE_PROFILE",
         "File with a tuning: used from the start, and written when the autotuner ends.",
         [](Settings& s, const Value& v) { s.autotune_profile = v.text; }),
    integer("HOROVOD_AUTOTUNE_WARMUP_SAMPLES", kSamples, "3",
            "Samples that the autotuner throws away at the beginning.",
            [](Settings& s, const Value& v) { s.autotune_warmup_samples = v.integer; }),
    integer("HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", kNotNegative, "10",
            "A sample ends when some tensor was reduced so many times, after 20 ms at the soonest.",
            [](Settings& s, const Value& v) { s.autotune_steps_per_sample = v.integer; }),
    integer("HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", kSamples, "20",
            "Tunings that are compared with the best so far, at most.",
            [](Settings& s, const Value& v) { s.autotune_max_samples = v.integer; }),
    decimal("HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", {.least = 0, .most = 1}, "0.8",
            "How noisy samples are: a better tuning leads by three times so many standard errors.",
            [](Settings& s, const Value& v) { s.autotune_noise = v.decimal; }),
};

// Read by the Python package; checked here as well, and in the list that users look at.
constexpr std::string_view kSchedules[] = {"auto", "step", "background"};
constexpr std::string_view kSwitchWords[] = {"1", "true", "on", "yes", "0", "false", "off", "no"};
constexpr Row kPythonRows[] = {
    choice("HOROVOD_GRADIENT_SCHEDULE", kSchedules, "auto",
           "When gradients are reduced: in `step`, in the `background` of the backward pass, or as "
           "the ranks and cores of the host suggest."),
    integer("HOROVOD_TUNE_ALLOCATOR", {.least = 0, .most = 1}, "0",
            "1: keep freed memory in the process, as `hvd.tune_allocator()` does."),
    choice(
        "HOROVOD_TENSORFLOW_GPU_KERNELS", kSwitchWords, "0",
        "1: TensorFlow's ops take tensors on devices of type GPU that a device plug-in has brought "
        "and whose streams begin with their `CUstream`. CUDA builds of TensorFlow have no such "
        "devices."),
    text("HOROVOD_RUN_EXECUTABLE",
         "Path of `horovodrun` for `horovod.run`; unset: beside Python, else in `PATH`."),
    choice("HOROVOD_RAY_TRAIN_HOOK", kSwitchWords, "1",
           "0: `ray.train.horovod` stays Ray's own, which refuses where Train V2 is on."),
    decimal("HOROVOD_SPARK_START_TIMEOUT", kDecimalSeconds, "600",
            "Seconds until all tasks of a Spark job must run; stands in for `start_timeout`."),
    text("HOROVOD_SPARK_PYTHONPATH",
         "Folders that workers of a Spark job look in first for modules, separated by colons."),
    text("HOROVOD_SPARK_WORK_DIR",
         "Folder that workers of a Spark job run in; unset: that of their tasks."),
    text("HOROVOD_SPARK_DEVICES", "GPUs that Spark has given to a task; set by `horovod.spark`."),
    text("HOROVOD_SPARK_USE_LOCAL_RANK_GPU_INDEX",
         "Not 0: estimators train on the GPU of the local rank, whatever Spark has given."),
};

constexpr Row kGpuRows[] = {
    integer("HOROVOD_NUM_NCCL_STREAMS", {.least = 1, .most = 64}, "1",
            "Streams, each with a communicator, that operations on GPU tensors take in turn; the "
            "smallest number of all ranks counts.",
            [](Settings& s, const Value& v) { s.nccl_streams = v.integer; }),
    on_off("HOROVOD_BATCH_D2D_MEMCOPIES", "1",
           "0: small GPU tensors of a group are not copied together before NCCL sums them."),
    flag("HOROVOD_ENABLE_ASYNC_COMPLETION",
         "An operation on GPU tensors is complete once it is in a stream; whoever waits "
         "for it makes the stream wait, not the process.",
         [](Settings& s, const Value& v) { s.async_completion = v.on; }),
    flag("HOROVOD_HIERARCHICAL_ALLREDUCE",
         "Sums of GPU tensors by NCCL inside hosts alone, by our own collectives between them."),
    flag("HOROVOD_TORUS_ALLREDUCE",
         "Reductions of GPU tensors in levels: NCCL inside hosts, then among members with the same "
         "place in their hosts."),
    text("HOROVOD_CUDA_LIB", "File of the GPU driver, instead of libcuda.so.1."),
    text("HOROVOD_NCCL_LIB",
         "File of NCCL, instead of the libnccl.so.2 that is loaded or found, or that of the "
         "package nvidia-nccl-cu12."),
};

// Knobs of the original that change nothing here. Scripts that set them keep working, and a typo in
// them is still found. The launcher says of their options what they are.
constexpr Row kIgnoredRows[] = {
    integer("HOROVOD_FUSION_THRESHOLD", kNotNegative, "134217728",
            "Size of the original's fusion buffer (option: in MiB). No effect: tensors are never "
            "copied together here.",
            [](Settings& s, const Value& v) { s.fusion_threshold_bytes = v.integer; }),
    decimal(
        "HOROVOD_CYCLE_TIME", kDecimalNotNegative, "1",
        "Milliseconds between two cycles of the original; operations are agreed on when they come, "
        "so it never delays one.",
        [](Settings& s, const Value& v) { s.cycle_time_ms = v.decimal; }),
    flag("HOROVOD_HIERARCHICAL_ALLGATHER",
         "No effect: NCCL gathers GPU tensors in one step, and a warning says so."),
    flag("HOROVOD_DISABLE_GROUP_FUSION",
         "No effect: a group is one operation, which is never fused with others."),
    on_off("HOROVOD_DISABLE_NVTX_RANGES", "0", "No effect: NVTX is not used."),
    integer("HOROVOD_ADASUM_MPI_CHUNK_SIZE", kNotNegative, "1073741824",
            "No effect: Adasum does not send through MPI."),
    on_off("HOROVOD_CCL_CACHE", "0", "No effect: oneCCL is not used."),
    flag("HOROVOD_ENABLE_XLA_OPS", "No effect in the core: it has no XLA operations."),
    text("DDL_OPTIONS", "No effect: the DDL backend is gone."),
    choice("MXNET_ASYNC_GPU_ENGINE", kBooleans, "false",
           "No effect in the core: MXNet reads it itself."),
};

struct Group {
  const char* title;
  std::span<const Row> rows;
};
constexpr Group kTable[] = {
    {"Engine", kEngineRows},
    {"Stalls and failures", kFailureRows},
    {"Timeline and log", kObservationRows},
    {"Memory and waiting", kResourceRows},
    {"Several hosts", kNetworkRows},
    {"Autotuning", kAutotuneRows},
    {"Launcher", kLauncherRows},
    {"MPI", kMpiRows},
    {"Python package", kPythonRows},
    {"GPUs", kGpuRows},
    {"Accepted, without effect", kIgnoredRows},
};

Result<Value> parse_value(const Row& row, const std::string& given) {
  Value value;
  switch (row.type) {
    case Type::kFlag:
    case Type::kSwitch:
    case Type::kInteger: {
      HVD_TRY_ASSIGN(value.integer, parse_integer(given, row.integers));
      value.on = row.type == Type::kFlag ? value.integer > 0 : value.integer != 0;
      break;
    }
    case Type::kDecimal: {
      HVD_TRY_ASSIGN(value.decimal, parse_decimal(given, row.decimals));
      break;
    }
    case Type::kChoice: {
      const bool is_former =
          row.choices.data() == kLogLevels && parse_choice(given, kFormerLogLevels).is_ok();
      HVD_TRY_ASSIGN(value.choice,
                     parse_choice(is_former ? row.default_value : given, row.choices));
      break;
    }
    case Type::kIntegerList: {
      HVD_TRY_ASSIGN(value.list, parse_integer_list(given));
      break;
    }
    case Type::kText:
      value.text = given;
      break;
  }
  return value;
}

std::string type_text(const Row& row) {
  switch (row.type) {
    case Type::kFlag:
      return "integer; above 0: on";
    case Type::kSwitch:
      return "integer; not 0: on";
    case Type::kInteger:
      return "integer" + range_text(row.integers);
    case Type::kDecimal:
      return "number" + range_text(row.decimals);
    case Type::kChoice:
      return choices_text(row.choices);
    case Type::kIntegerList:
      return "integers separated by commas";
    case Type::kText:
      return "text";
  }
  return "";
}

// Kept from the original: such a limit never ends a job, but the user should know.
void disarm_short_stall_limit(Settings& settings) {
  if (settings.stall_shutdown_time.count() == 0) return;
  if (settings.stall_shutdown_time >= settings.stall_check_time) return;
  settings.warnings.push_back(
      concat("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS (", settings.stall_shutdown_time.count(),
             ") is less than HOROVOD_STALL_CHECK_TIME_SECONDS (", settings.stall_check_time.count(),
             "), so stalled operations will not end the job"));
  settings.stall_shutdown_time = std::chrono::seconds(0);
}

}  // namespace

Environment process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

Result<Settings> read_settings(const Environment& environment) {
  Settings settings;
  for (const Group& group : kTable) {
    for (const Row& row : group.rows) {
      const auto given = environment(row.name);
      if (!given || trim(*given).empty()) continue;
      const auto value = parse_value(row, *given);
      if (!value) return blame(row.name, value.status());
      if (row.store != nullptr) row.store(settings, value.value());
    }
  }
  disarm_short_stall_limit(settings);
  return settings;
}

Status check_setting(std::string_view name, const std::string& value) {
  for (const Group& group : kTable) {
    for (const Row& row : group.rows) {
      if (row.name == name) return parse_value(row, value).status();
    }
  }
  return invalid_argument("no such setting");
}

std::vector<SettingInfo> describe_settings() {
  std::vector<SettingInfo> infos;
  for (const Group& group : kTable) {
    for (const Row& row : group.rows) {
      infos.push_back({row.name, type_text(row), row.default_value, row.meaning, group.title});
    }
  }
  return infos;
}

}  // namespace hvd
