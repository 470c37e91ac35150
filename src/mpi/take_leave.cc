#include "mpi/take_leave.h"

#include <unistd.h>

#include <condition_variable>
#include <thread>

#include "base/log.h"
#include "base/thread_annotations.h"

namespace hvd::mpi {
namespace {

// Requests of streams that peers have not ended yet.
constexpr std::chrono::seconds kDrainTime{2};
// All ranks are there: it takes milliseconds.
constexpr std::chrono::seconds kFinalizeTime{30};
// MPICH over UCX's TCP: a rank that still looks at MPI when the first one asks it for a last
// acknowledgement answers; that one then waits for the end of the job and answers nobody, and the
// rank that was late gets no acknowledgement, for ever. So nobody asks before all have looked away:
// the last one sees that all have come at most one rest later than the first.
constexpr std::chrono::milliseconds kSettleTime{50};

// MPI_Finalize takes no deadline. No part of this outlives its owner.
class FinalizeWatch {
 public:
  FinalizeWatch(const Api& api, int exit_status)
      : thread_([this, name = api.name(), exit_status] { watch(name, exit_status); }) {}
  ~FinalizeWatch() {
    {
      const MutexLock lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  FinalizeWatch(const FinalizeWatch&) = delete;
  FinalizeWatch& operator=(const FinalizeWatch&) = delete;

 private:
  void watch(const std::string& name, int exit_status) {
    const Deadline deadline = Deadline::after(kFinalizeTime);
    {
      const MutexLock lock(mutex_);
      while (!is_over_ && !deadline.passed())
        changed_.wait_for(mutex_, deadline.remaining(kFinalizeTime));
      if (is_over_) return;
    }
    HVD_LOG(kError, "MPI_Finalize of ", name, " has not returned for ", kFinalizeTime.count(),
            " s, though all ranks had come to their end: this process ends without it");
    ::_exit(exit_status);
  }

  Mutex mutex_;
  std::condition_variable_any changed_;
  bool is_over_ HVD_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

void take_leave(Api& api, std::span<Group* const> groups, int exit_status) {
  const Deadline drained_by = Deadline::after(kDrainTime);
  for (Group* group : groups) {
    if (!group->drain_until(drained_by) && !group->status().is_ok()) return;
  }
  // All are begun before any is waited for: ranks need not have their groups in the same order.
  for (Group* group : groups) {
    if (!group->begin_meeting().is_ok()) return;
  }
  for (Group* group : groups) {
    if (!group->finish_meeting().is_ok()) return;
  }
  std::this_thread::sleep_for(kSettleTime);
  const FinalizeWatch watch(api, exit_status);
  (void)api.finalize().is_ok();
}

}  // namespace hvd::mpi
