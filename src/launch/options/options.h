// options.h - the command line of horovodrun as a value.
// Pure: never reads the environment, a file or the host name. Failures are mistakes of the user
// (exit code 2). Everything after the first argument that is no option belongs to the command.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "launch/options/tunables.h"

namespace hvd::launch {

// More is a typing mistake. Of how many ranks a job may consist is for the core to say, at init.
inline constexpr int32_t kMaxWorkers = 65536;

enum class Request {
  kRun,
  kHelp,
  kVersion,
  kCheckBuild,
  kPlanJson,
  kParseJson,
  kAgent,
  kDecide,
  kDoctor
};

// Who starts the workers.
enum class Controller { kUnspecified, kGloo, kMpi, kJsrun };

enum class HostKeyCheck { kAcceptNew, kNone };

struct SshOptions {
  std::optional<int32_t> port = {};
  std::string identity_file = {};
  HostKeyCheck host_keys = HostKeyCheck::kAcceptNew;
};

struct MpiOptions {
  std::string more_arguments = {};
  std::string binding_arguments = {};
  bool tcp_only = false;
};

struct ElasticOptions {
  std::optional<int32_t> min_num_proc = {};
  std::optional<int32_t> max_num_proc = {};
  std::optional<int32_t> slots_per_host = {};
  std::optional<int32_t> reset_limit = {};
  std::optional<std::chrono::seconds> timeout = {};
  std::optional<std::pair<int32_t, int32_t>> cooldown_range = {};  // seconds
  std::string host_discovery_script = {};
  bool whole_hosts = false;
  std::string join = {};                                     // HOST:PORT; empty: not given
  std::string key_file = {};                                 // of --join
  std::string log_file = {};                                 // empty: none
  std::optional<std::chrono::milliseconds> chaos_kill = {};  // mean time between two kills
  uint64_t chaos_seed = 0;                                   // 0: a random one

  // As in the original: the first two turn elastic training on, the others only shape it. So do
  // hosts that come when they like.
  bool is_requested() const {
    return min_num_proc.has_value() || !host_discovery_script.empty() || !join.empty();
  }
};

struct Options {
  Request request = Request::kRun;
  int32_t num_proc = 0;               // 0: not given
  std::string hosts = {};             // as given to -H; empty: not given
  std::string hostfile = {};          // empty: not given
  std::string config_file = {};       // empty: none
  std::string output_directory = {};  // empty: none
  std::vector<std::string> network_interfaces = {};
  bool prefix_timestamp = false;
  bool verbose = false;
  bool disable_cache = false;
  bool tries_gpus = false;  // doctor --gpu
  std::optional<std::chrono::seconds> start_timeout = {};
  Controller controller = Controller::kUnspecified;
  SshOptions ssh = {};
  MpiOptions mpi = {};
  ElasticOptions elastic = {};
  Tunables tunables = {};
  std::vector<std::string> command = {};
  std::vector<std::string> warnings = {};  // about the words that were used
};

// What a command line says. Values of the right kind that are refused (a number out of its range)
// are not in `options`; `values` tells of the first.
struct ParsedWords {
  Options options = {};
  Status values = {};
};

// `arguments` without the program's name. Fails if the words themselves are not understood: an
// option that nobody knows, a value that is missing or no number, two that contradict each other.
Result<ParsedWords> parse_words(std::span<const std::string> arguments);

// The same where nobody cares what exactly is wrong.
Result<Options> parse_options(std::span<const std::string> arguments);

}  // namespace hvd::launch
