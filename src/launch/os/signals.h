// signals.h - signals as events on a descriptor, and the way back for the workers.
// One thread, once per process: takes over the signals for the life of the launcher.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <optional>

#include "base/fd.h"
#include "base/status.h"

namespace hvd::launch {

struct SignalEvent {
  int number;
  pid_t sender;  // of SIGCHLD: the child that changed
};

class Signals {
 public:
  // Blocks SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT and reads them from a descriptor
  // instead. A signal that was ignored (nohup) stays ignored. SIGPIPE is ignored: writes report it.
  static Result<Signals> take_over();

  int poll_fd() const { return fd_.get(); }
  std::optional<SignalEvent> next() const;  // never blocks

  // In a worker, before exec: as if we had never touched anything. Safe after fork.
  void restore() const;

 private:
  UniqueFd fd_;
  sigset_t mask_before_{};
  struct sigaction pipe_before_ {};
};

}  // namespace hvd::launch
