#include "launch/help.h"

#include "base/text.h"
#include "base/version.h"
#include "launch/option_table.h"

namespace hvd::launch {
namespace {

constexpr size_t kHelpColumn = 30;

constexpr char kUsage[] = R"(
  horovodrun -np N [options] command [args...]

Starts N copies of a command on this machine as one Horovod job, shows their output line by line
with the rank in front, and ends them all as soon as one fails.

  horovodrun -np 2 python train.py              two workers
  horovodrun -np 4 --output-filename logs ./a   four workers, one log per rank
  horovodrun -np 2 -- ./tool --its-own option   -- ends the options of horovodrun

Options (a long one may be shortened while it stays unique; --name=value works too):
)";

constexpr char kRest[] = R"(
What a worker finds
  HOROVOD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE, _CROSS_RANK, _CROSS_SIZE, _HOSTNAME, _JOB_ID and
  PYTHONUNBUFFERED=1, besides the environment of horovodrun. Rank 0 reads the standard input of
  horovodrun, the others /dev/null. Each worker leads its own process group.

How a job ends
  When a rank fails, all others get SIGTERM, and SIGKILL if they are still there 5 seconds later
  (HOROVOD_TERMINATION_GRACE_SECONDS); so do the processes that they started. The last lines say
  which rank failed first and how. Ctrl-C, SIGTERM and SIGHUP end the job in the same way; a second
  one kills at once. If horovodrun itself is killed, so are the workers.

Exit code
  0      every rank exited with 0
  1-255  what the rank that failed first exited with; 128+S if signal S killed it
  2      the command line was not understood (nothing was started)
  125    horovodrun itself could not go on
  126    the command cannot be executed
  127    the command was not found
  128+S  horovodrun was ended by signal S (130 for Ctrl-C)
)";

std::string option_line(const OptionInfo& option) {
  std::string line = concat("  ", join_text(option.names));
  if (option.takes_value()) line += concat(" ", option.value_name);
  if (line.size() + 2 > kHelpColumn) {
    line += '\n';
    line.append(kHelpColumn, ' ');
  } else {
    line.append(kHelpColumn - line.size(), ' ');
  }
  return line + std::string(option.help) + "\n";
}

}  // namespace

std::string help_text() {
  std::string text = concat("horovodrun ", version_text(), "\n", kUsage);
  for (const OptionInfo& option : option_table()) text += option_line(option);
  return text + kRest;
}

}  // namespace hvd::launch
