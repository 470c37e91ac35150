// mpi_jobs.h - the MPI side of init and of the end of the process: MPI is started once, whatever
// number of jobs follow each other. One thread at a time (Runtime's life_mutex_, and exit).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/settings.h"
#include "base/status.h"
#include "horovod/hvd.h"
#include "mpi/choice.h"
#include "mpi/group.h"
#include "mpi/join.h"
#include "mpi/process.h"

namespace hvd::capi {

class MpiJobs {
 public:
  // What the options and the environment ask for.
  static Result<mpi::Choice> choose(const hvd_init_options* options,
                                    const Environment& environment);

  Result<mpi::Joined> join(const hvd_init_options* options, const Environment& environment,
                           const mpi::Choice& choice, uint64_t epoch, Deadline deadline);
  // A job that failed has peers that will not answer.
  void job_failed() { may_finalize_ = false; }
  // At exit, after the last job. Not if MPI is the program's or a job has failed: launchers end the
  // other processes when one goes without it.
  void finalize(int exit_status);

  bool is_started() const { return process_ != nullptr; }
  bool has_thread_multiple() const { return process_->has_thread_multiple(); }

 private:
  Result<mpi::Group*> group_for(const hvd_init_options* options, Deadline deadline);

  std::unique_ptr<mpi::Process> process_;
  // Never given back; the first is that of MPI_COMM_WORLD, if it was used.
  std::vector<std::unique_ptr<mpi::Group>> groups_;
  mpi::Group* world_ = nullptr;
  bool may_finalize_ = true;
};

}  // namespace hvd::capi
