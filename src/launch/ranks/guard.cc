#include "launch/ranks/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace hvd::launch {
namespace {

constexpr int kMostPatience = 1000;  // milliseconds

// Holding a pipe of a worker or our standard output would make others wait for us; who waits for
// the end of our standard error waits for what we have to say.
void close_from(unsigned first) {
  if (::syscall(SYS_close_range, first, UINT_MAX, 0) == 0) return;
  // A kernel without close_range; descriptors of the launcher are few and low.
  constexpr unsigned kEnd = 1024;
  for (unsigned fd = first; fd < kEnd; ++fd) ::close(static_cast<int>(fd));
}

// The workers were killed, and nobody is left who could say why.
void tell_end(pid_t launcher) {
  const std::string text =
      concat("horovodrun: process ", launcher,
             " of horovodrun was killed; its workers on this host are killed with it\n");
  pollfd item{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&item, 1, kMostPatience) <= 0) return;  // nobody reads what is there already
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

[[noreturn]] void keep_watch(int words, pid_t launcher, std::vector<pid_t> groups) {
  ::setsid();  // whoever kills the launcher's group must not kill us with it
  ::prctl(PR_SET_NAME, "horovodrun-guard");
  ::dup2(words, STDIN_FILENO);
  ::close(STDOUT_FILENO);
  close_from(STDERR_FILENO + 1);
  while (true) {
    pid_t ended = 0;
    const ssize_t count = ::read(STDIN_FILENO, &ended, sizeof ended);
    if (count < 0 && errno == EINTR) continue;
    if (count != static_cast<ssize_t>(sizeof ended)) break;
    if (ended < 0) {
      groups.push_back(-ended);
    } else {
      std::erase(groups, ended);
    }
  }
  for (pid_t group : groups) ::kill(-group, SIGKILL);
  if (!groups.empty()) tell_end(launcher);
  ::_exit(0);
}

}  // namespace

Result<Guard> Guard::watch(std::span<const pid_t> groups) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_status("cannot make the guard's pipe", errno);
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t launcher = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return errno_status("cannot start the guard", errno);
  if (pid == 0) keep_watch(read_end.get(), launcher, {groups.begin(), groups.end()});
  return Guard(pid, std::move(write_end));
}

Guard::Guard(Guard&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), words_(std::move(other.words_)) {}

void Guard::remember(pid_t group) { forget(-group); }

void Guard::forget(pid_t group) {
  // Whole or not at all (smaller than PIPE_BUF); a guard that is gone has nothing to forget.
  [[maybe_unused]] const ssize_t written = ::write(words_.get(), &group, sizeof group);
}

Guard::~Guard() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);  // before the pipe closes, which would mean that we were killed
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace hvd::launch
