#include "launch/plan/jsrun_command.h"

#include <algorithm>

#include "base/text.h"
#include "launch/os/shell_words.h"

namespace hvd::launch {

Result<std::string> jsrun_rank_file(std::span<const HostSlots> hosts, int32_t num_proc,
                                    const NodeShape& shape) {
  if (shape.gpu_count < 1 || shape.core_count < 1) {
    return precondition_error(concat("the compute nodes report ", shape.core_count, " cores and ",
                                     shape.gpu_count, " GPUs: nothing to share out"));
  }
  const int32_t share = shape.core_count * shape.threads_per_core / shape.gpu_count;
  std::string text = "overlapping_rs: allow\ncpu_index_using: logical\n";
  int32_t rank = 0;
  for (const HostSlots& host : hosts) {
    if (host.slots > shape.gpu_count) {
      return invalid_argument(concat("host ", host.host, " has ", host.slots, " slots, but only ",
                                     shape.gpu_count, " GPUs"));
    }
    text += '\n';
    for (int32_t slot = 0; slot < host.slots && rank < num_proc; ++slot, ++rank) {
      text += concat("rank: ", rank, ": { hostname: ", host.host, "; cpu: {", slot * share, "-",
                     (slot + 1) * share - 1, "} ; gpu: * ; mem: * }\n");
    }
    if (rank == num_proc) break;
  }
  if (rank < num_proc) {
    return invalid_argument(concat("-np ", num_proc, " asks for more workers than the hosts have ",
                                   "slots (", rank, ")"));
  }
  return text;
}

namespace {

// Also what the shell would take as it is: jsrun gets one argument either way.
std::string in_quotes(const std::string& text) {
  const std::string quoted = shell_quote(text);
  return quoted.front() == '\'' ? quoted : concat("'", quoted, "'");
}

}  // namespace

std::string jsrun_command_line(const JsrunRequest& request) {
  const Options& options = request.options;
  std::string line = "jsrun ";
  line += options.mpi.binding_arguments.empty()
              ? concat("--erf_input ", shell_quote(request.rank_file_path))
              : options.mpi.binding_arguments;
  if (!options.output_directory.empty()) {
    const std::string file = shell_quote(options.output_directory);
    line += concat(" --stdio_stderr ", file, " --stdio_stdout ", file);
  }
  std::vector<std::string> flags;
  if (options.mpi.tcp_only && request.implementation == MpiImplementation::kSpectrumMpi) {
    flags.emplace_back("-tcp");
  }
  if (!options.mpi.more_arguments.empty()) flags.push_back(options.mpi.more_arguments);
  if (!flags.empty()) line += concat(" --smpiargs ", in_quotes(join_text(flags, " ")));
  return concat(line, " ", shell_join(options.command));
}

}  // namespace hvd::launch
