// command_path.h - finds the program before anything is started, as a shell would.
// Reads the file system; never blocks for long. Any thread.
#pragma once

#include <string>

#include "base/status.h"

namespace hvd::launch {

enum class CommandProblem { kNone, kNotFound, kNotExecutable };

struct CommandPath {
  std::string path;  // what to execute
  CommandProblem problem = CommandProblem::kNone;
  std::string reason;  // why not, ready to be shown
};

// A name with a slash is taken as it is; any other is searched in `search_path` (the value of
// PATH).
CommandPath find_command(const std::string& command, const std::string& search_path);

}  // namespace hvd::launch
