#include "launch/options/help.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "base/version.h"
#include "launch/options/option_table.h"

namespace hvd::launch {
namespace {

constexpr size_t kLeastWidth = 60;
constexpr size_t kHelpColumn = 34;

// Words, broken into lines of `width` columns; from the second on they are indented.
void append_wrapped(std::string& out, std::string_view text, size_t column, size_t indent,
                    size_t width) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (column > indent && column + 1 + word.size() > width) {
      out += '\n';
      out.append(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  out += '\n';
}

constexpr std::string_view kPurpose =
    "Starts N copies of a command as one Horovod job, on this machine or on many, shows their "
    "output line by line with the rank in front, and ends them all as soon as one fails.";

constexpr char kUsage[] = R"(
  horovodrun -np N [options] command [args...]
  horovodrun doctor [-H hosts] [--gpu]

)";

constexpr char kExamples[] = R"(
Examples
  horovodrun -np 2 python train.py                   two workers here
  horovodrun -np 8 -H gpu1:4,gpu2:4 python train.py  four on each of two hosts
  horovodrun -np 8 --hostfile hosts python train.py  the same from a file
  horovodrun -np 4 --output-filename logs ./a.out    one log per rank
  horovodrun -np 2 -- ./tool --its-own option        -- ends our options
  horovodrun doctor -H gpu1:4,gpu2:4                 check both; explain errors
  horovodrun doctor --gpu                            check the GPUs here
)";

struct Section {
  std::string_view title;
  std::string_view text;
};
constexpr Section kSections[] = {
    {"Other hosts",
     "are reached by ssh, without a password, with this program at the same path "
     "(HOROVOD_REMOTE_EXECUTABLE names another). HOROVOD_SSH_COMMAND replaces ssh. Without -H and "
     "--hostfile the hosts of a Slurm or LSF job or of a Kubernetes MPIJob are used, else this "
     "machine."},
    {"What a worker finds",
     "HOROVOD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE, _CROSS_RANK, _CROSS_SIZE, _HOSTNAME, _JOB_ID "
     "and PYTHONUNBUFFERED=1, besides the environment of horovodrun. Rank 0 reads the standard "
     "input of horovodrun, the others /dev/null. Each worker leads its own process group."},
    {"How a job ends",
     "When a rank fails, all others get SIGTERM, and SIGKILL if they are still there 5 seconds "
     "later (HOROVOD_TERMINATION_GRACE_SECONDS); so do the processes that they started. The last "
     "lines say which rank failed first and how. Ctrl-C, SIGTERM and SIGHUP end the job in the "
     "same way; a second one kills at once. If horovodrun itself is killed, so are the workers."},
};

constexpr char kExitCodes[] = R"(
Exit code
  0      every rank exited with 0
  1-255  what the rank that failed first exited with; 128+S for signal S
  2      the command line was not understood (nothing was started)
  125    horovodrun could not go on: a host was not reached, or lost
  126    the command cannot be executed
  127    the command was not found
  128+S  horovodrun was ended by signal S (130 for Ctrl-C)
)";

void append_option(std::string& out, const OptionInfo& option, size_t width) {
  std::string line = concat("  ", join_text(option.names));
  if (option.takes_value()) line += concat(" ", option.value_name);
  if (line.size() + 2 > kHelpColumn) {
    out += line + '\n';
    line.clear();
  }
  line.append(kHelpColumn - line.size(), ' ');
  out += line;
  append_wrapped(out, option.help, kHelpColumn, kHelpColumn, width);
}

}  // namespace

std::string help_text(size_t width) {
  width = std::max(width, kLeastWidth);
  std::string text = concat("horovodrun ", version_text(), "\n", kUsage);
  append_wrapped(text, kPurpose, 0, 0, width);
  text += kExamples;
  text += '\n';
  append_wrapped(text,
                 "Options (a long one may be shortened while it stays unique; --name=value works "
                 "too)",
                 0, 0, width);
  for (std::string_view group : option_groups()) {
    text += concat("\n", group, "\n");
    for (const OptionInfo& option : option_table()) {
      if (option.group == group && option.visibility == FlagVisibility::kShown) {
        append_option(text, option, width);
      }
    }
  }
  for (const Section& section : kSections) {
    text += concat("\n", section.title, "\n  ");
    append_wrapped(text, section.text, 2, 2, width);
  }
  return text + kExitCodes;
}

}  // namespace hvd::launch
