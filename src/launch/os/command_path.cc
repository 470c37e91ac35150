#include "launch/os/command_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string_view>

#include "base/text.h"

namespace hvd::launch {
namespace {

// Whether `path` can be executed; if not, why, and whether there is such a file at all.
CommandPath examine(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return {.path = {},
            .problem = CommandProblem::kNotFound,
            .reason = errno_status(concat("command '", path, "' not found"), errno).message()};
  }
  const int error_number = S_ISDIR(info.st_mode)               ? EISDIR
                           : ::access(path.c_str(), X_OK) == 0 ? 0
                                                               : errno;
  if (error_number == 0) return {.path = path, .problem = CommandProblem::kNone, .reason = {}};
  return {.path = {},
          .problem = CommandProblem::kNotExecutable,
          .reason = errno_status(concat("cannot execute '", path, "'"), error_number).message()};
}

}  // namespace

CommandPath find_command(const std::string& command, const std::string& search_path) {
  if (command.find('/') != std::string::npos) return examine(command);

  std::optional<CommandPath> refused;  // the first that exists, if none can be executed
  std::string_view rest = search_path;
  while (true) {
    const size_t colon = rest.find(':');
    const std::string_view directory = rest.substr(0, colon);
    // An empty entry of PATH means the working directory.
    CommandPath found = examine(concat(directory.empty() ? "." : directory, "/", command));
    if (found.problem == CommandProblem::kNone) return found;
    if (found.problem == CommandProblem::kNotExecutable && !refused) refused = std::move(found);
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  if (refused) return *refused;
  const std::string here = concat("./", command);
  const bool is_here = examine(here).problem == CommandProblem::kNone;
  return {.path = {},
          .problem = CommandProblem::kNotFound,
          .reason = concat("command '", command, "' not found in PATH (", search_path, ")",
                           is_here ? concat("; did you mean ", here, "?") : "")};
}

}  // namespace hvd::launch
