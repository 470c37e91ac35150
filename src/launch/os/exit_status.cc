#include "launch/os/exit_status.h"

#include <sys/wait.h>

#include <cerrno>
#include <cstring>

#include "base/status.h"
#include "base/text.h"

namespace hvd::launch {
namespace {

bool comes_before(const RankExit& a, const RankExit& b, std::optional<int32_t> announced = {}) {
  const bool a_by_signal = a.status.signal != 0;
  const bool b_by_signal = b.status.signal != 0;
  if (a_by_signal != b_by_signal) return a_by_signal;
  if (a.rank == announced || b.rank == announced) return a.rank == announced;
  return a.rank < b.rank;
}

}  // namespace

ExitStatus ExitStatus::from_wait_status(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    return {.signal = WTERMSIG(wait_status), .core_dumped = WCOREDUMP(wait_status) != 0};
  }
  return {.code = WEXITSTATUS(wait_status)};
}

int exit_code_of(const ExitStatus& status) {
  return status.signal != 0 ? 128 + status.signal : status.code;
}

int exit_code_of_exec_error(int exec_error) {
  const bool missing = exec_error == ENOENT || exec_error == ENOTDIR;
  return static_cast<int>(missing ? LauncherExit::kNotFound : LauncherExit::kNotExecutable);
}

std::string describe_signal(int signal) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the launcher has one thread
  return concat("signal ", signal, " (", strsignal(signal), ")");
}

std::string describe(const ExitStatus& status) {
  if (status.exec_error != 0) {
    return errno_status("could not be started", status.exec_error).message();
  }
  if (status.signal != 0) {
    return concat("killed by ", describe_signal(status.signal),
                  status.core_dumped ? ", core dumped" : "");
  }
  return concat("exited with code ", status.code);
}

std::optional<int32_t> first_failure(std::span<const RankExit> exits,
                                     std::optional<int32_t> announced) {
  const RankExit* first = nullptr;
  for (const RankExit& exit : exits) {
    if (exit.status.is_success()) continue;
    if (first == nullptr || comes_before(exit, *first, announced)) first = &exit;
  }
  return first == nullptr ? std::nullopt : std::optional(first->rank);
}

RankExit settle_first_failure(const RankExit& seen_first, std::span<const RankExit> already_dying) {
  if (seen_first.status.signal != 0) return seen_first;
  const RankExit* cause = &seen_first;
  for (const RankExit& exit : already_dying) {
    if (exit.status.signal != 0 && comes_before(exit, *cause)) cause = &exit;
  }
  return *cause;
}

}  // namespace hvd::launch
