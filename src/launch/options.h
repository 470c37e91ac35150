// options.h - the command line of horovodrun as a value.
// Pure: never reads the environment, a file or the host name. Failures are mistakes of the user
// (exit code 2). Everything after the first argument that is no option belongs to the command.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace hvd::launch {

// More is a typing mistake: one host has no use for it, and each worker costs two pipes.
inline constexpr int32_t kMaxWorkers = 4096;

enum class Request { kRun, kHelp, kVersion };

struct Options {
  Request request = Request::kRun;
  int32_t num_proc = 0;
  std::string hosts = {};             // as given to -H; empty: this machine
  std::string output_directory = {};  // empty: none
  bool prefix_timestamp = false;
  bool verbose = false;
  std::optional<std::chrono::seconds> start_timeout = {};
  std::vector<std::string> command = {};
};

// `arguments` without the program's name.
Result<Options> parse_options(std::span<const std::string> arguments);

}  // namespace hvd::launch
