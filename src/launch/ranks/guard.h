// guard.h - a small process that outlives a killed launcher and ends what the workers left behind.
// The kernel kills the workers themselves (spawn.h), but not the processes they started, such as
// data loaders. The guard holds the read end of a pipe; when the pipe closes, the launcher is gone,
// and the guard kills the groups and says so on standard error. One thread.
#pragma once

#include <sys/types.h>

#include <span>

#include "base/fd.h"
#include "base/status.h"

namespace hvd::launch {

class Guard {
 public:
  // Forks. Call when all workers have been started: whoever is forked later would keep the pipe
  // open.
  static Result<Guard> watch(std::span<const pid_t> groups);

  Guard(Guard&& other) noexcept;
  Guard& operator=(Guard&&) = delete;
  ~Guard();  // dismisses it: the groups have ended, or are left on purpose

  // One more, started later.
  void remember(pid_t group);
  // That group has ended; its number may soon belong to somebody else.
  void forget(pid_t group);

  pid_t pid() const { return pid_; }
  // Somebody has waited for pid(): that number, too, may soon belong to somebody else.
  void note_reaped() { pid_ = -1; }

 private:
  Guard(pid_t pid, UniqueFd words) : pid_(pid), words_(std::move(words)) {}

  pid_t pid_;
  UniqueFd words_;
};

}  // namespace hvd::launch
