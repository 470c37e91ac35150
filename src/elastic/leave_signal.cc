#include "elastic/leave_signal.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

namespace hvd::elastic {
namespace {

// Written once before the handler is there, which reads them.
std::atomic<pid_t> the_launcher{0};
std::atomic<pid_t> the_worker{0};
std::atomic<int> the_event{-1};
// Set by the handler, read by whoever looks; nothing else is published by it.
std::atomic<bool> has_come{false};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<pid_t>::is_always_lock_free,
              "a signal handler may use no lock");

void wake_waits() {
  const int error = errno;  // of whatever was interrupted
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(the_event.load(), &one, sizeof one);
  errno = error;
}

void on_signal(int number, siginfo_t* info, void* /*context*/) {
  const bool is_launcher = info != nullptr && info->si_pid == the_launcher.load();
  // A child that was forked, such as a loader of data, is no worker.
  const bool is_worker = ::getpid() == the_worker.load();
  if (is_worker && !is_launcher && !has_come.exchange(true)) return wake_waits();
  // As if nobody had asked to hear of it.
  ::signal(number, SIG_DFL);
  ::raise(number);
}

}  // namespace

void take_leave_signal(pid_t launcher) {
  struct sigaction now {};
  if (::sigaction(SIGTERM, nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL) return;
  the_launcher.store(launcher);
  the_worker.store(::getpid());
  // Without one the signal is noted all the same.
  the_event.store(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGTERM, &action, nullptr);
}

bool has_leave_signal_come() { return has_come.load(); }

int leave_signal_fd() { return the_event.load(); }

}  // namespace hvd::elastic
