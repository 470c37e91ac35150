#include "launch/os/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

namespace hvd::launch {

Result<Signals> Signals::take_over() {
  Signals signals;
  sigset_t wanted;
  sigemptyset(&wanted);
  for (int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT})
    sigaddset(&wanted, number);
  if (const int error = ::pthread_sigmask(SIG_BLOCK, &wanted, &signals.mask_before_); error != 0) {
    return errno_status("cannot block signals", error);
  }

  // A parent that ignores SIGCHLD makes us ignore it too, and then nobody's end is ever seen. Stops
  // are no ends: without SA_NOCLDSTOP they would be reported in the same place.
  struct sigaction child {};
  child.sa_handler = SIG_DFL;
  child.sa_flags = SA_NOCLDSTOP;
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  if (::sigaction(SIGCHLD, &child, nullptr) != 0 ||
      ::sigaction(SIGPIPE, &ignore, &signals.pipe_before_) != 0) {
    return errno_status("cannot set signal actions", errno);
  }

  signals.fd_.reset(::signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals.fd_.valid()) return errno_status("cannot make a signal descriptor", errno);
  return signals;
}

std::optional<SignalEvent> Signals::next() const {
  signalfd_siginfo info{};
  while (true) {
    const ssize_t count = ::read(fd_.get(), &info, sizeof info);
    if (count == static_cast<ssize_t>(sizeof info)) break;
    if (count < 0 && errno == EINTR) continue;
    return std::nullopt;
  }
  return SignalEvent{.number = static_cast<int>(info.ssi_signo),
                     .sender = static_cast<pid_t>(info.ssi_pid)};
}

void Signals::restore() const {
  ::sigaction(SIGPIPE, &pipe_before_, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

}  // namespace hvd::launch
