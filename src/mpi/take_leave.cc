#include "mpi/take_leave.h"

#include <unistd.h>

#include <condition_variable>
#include <thread>

#include "base/log.h"
#include "base/thread_annotations.h"

namespace hvd::mpi {
namespace {

// MPI_Finalize takes no deadline. No part of this outlives its owner.
class FinalizeWatch {
 public:
  FinalizeWatch(const Api& api, std::chrono::milliseconds limit, int exit_status)
      : name_(api.name()), limit_(limit), exit_status_(exit_status), thread_([this] { watch(); }) {}
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
  void watch() {
    const Deadline deadline = Deadline::after(limit_);
    {
      const MutexLock lock(mutex_);
      while (!is_over_ && !deadline.passed()) changed_.wait_for(mutex_, deadline.remaining(limit_));
      if (is_over_) return;
    }
    HVD_LOG(kError, "MPI_Finalize of ", name_, " has not returned for ", limit_.count() / 1000.0,
            " s, though all ranks had come to their end: this process ends without it");
    ::_exit(exit_status_);
  }

  const std::string name_;
  const std::chrono::milliseconds limit_;
  const int exit_status_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool is_over_ HVD_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

void take_leave(Api& api, std::span<Group* const> groups, int exit_status,
                const LeaveTimes& times) {
  const Deadline drained_by = Deadline::after(times.drain);
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
  std::this_thread::sleep_for(times.settle);
  const FinalizeWatch watch(api, times.finalize, exit_status);
  (void)api.finalize().is_ok();
}

}  // namespace hvd::mpi
