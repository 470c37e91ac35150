// process.h - MPI in this process: found, initialized unless the program has done so, and finalized
// at the end if it was us. At most one per process. Any thread; start() blocks as MPI_Init does.
#pragma once

#include <atomic>
#include <memory>

#include "base/settings.h"
#include "base/status.h"
#include "mpi/api.h"

namespace hvd::mpi {

class Process {
 public:
  // PRECONDITION_ERROR: no library, MPI is finalized already, or the program has initialized it
  // with a level of thread support that leaves no room for our threads.
  static Result<std::unique_ptr<Process>> start(const Environment& environment);
  ~Process() = default;  // nothing: MPI cannot be started twice

  Api& api() { return *api_; }
  bool has_thread_multiple() const { return level_ == ThreadLevel::kMultiple; }
  // Was it us who initialized it, in this very process (not in the parent of a fork)?
  bool is_ours() const;

 private:
  Process(std::unique_ptr<Api> api, ThreadLevel level, int initializer)
      : api_(std::move(api)), level_(level), initializer_(initializer) {}

  std::unique_ptr<Api> api_;
  const ThreadLevel level_;
  const int initializer_;  // process id; 0: the program
};

}  // namespace hvd::mpi
