#include "elastic/leave_signal.h"

#include <atomic>
#include <csignal>

namespace hvd::elastic {
namespace {

// Written once before the handler is there, which reads it.
std::atomic<pid_t> the_launcher{0};
// Set by the handler, read by whoever looks; nothing else is published by it.
std::atomic<bool> has_come{false};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<pid_t>::is_always_lock_free,
              "a signal handler may use no lock");

void on_signal(int number, siginfo_t* info, void* /*context*/) {
  const bool is_launcher = info != nullptr && info->si_pid == the_launcher.load();
  if (!is_launcher && !has_come.exchange(true)) return;
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
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGTERM, &action, nullptr);
}

bool has_leave_signal_come() { return has_come.load(); }

}  // namespace hvd::elastic
