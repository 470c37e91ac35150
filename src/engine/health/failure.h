// failure.h - why this rank's engine takes no more work. The first cause becomes one Status for
// everything pending and for every later call; closing (shutdown of this rank) is the milder form.
// Says it to peers, to threads of this rank that wait and, before the program is told, to whoever
// started the process. Ends no operation itself: see Lookout. Thread: any. Never blocks.
#pragma once

#include <atomic>
#include <string>

#include "base/failure_note.h"
#include "base/status.h"
#include "base/thread_annotations.h"
#include "engine/operation/local_waiters.h"
#include "mirror/mirror.h"
#include "shm/job.h"

namespace hvd::engine {

// A shutdown that `leaver` (a rank of this host) began.
Status shut_down_status(const shm::Job& job, int leaver);
// Of the ranks of this host, which began to leave first; `otherwise` if nobody has.
int first_leaver(const shm::Job& job, int otherwise);

class Failure {
 public:
  // mirror: null where the job has one host. note: where HOROVOD_FAILURE_NOTE says.
  Failure(shm::Job& job, mirror::Mirror* mirror, LocalWaiters& waiters, std::string_view note)
      : job_(job), mirror_(mirror), waiters_(waiters), note_(note) {}

  // The job has failed with `status`, and `rank` is the cause.
  void fail(const Status& status, int rank) HVD_EXCLUDES(mutex_);
  // OK, or why every call fails.
  Status health() HVD_EXCLUDES(mutex_);
  bool is_broken(std::memory_order order = std::memory_order_relaxed) const {
    return is_broken_.load(order);
  }

  // No new submissions. Before the peers are told that this rank leaves.
  void begin_closing() { is_closing_.store(true); }
  bool is_closing() const { return is_closing_.load(std::memory_order_relaxed); }

  // A caller is about to be told `status`: leaves the note, if it is the job's failure and not a
  // shutdown of this rank, which is nobody's fault.
  void telling(const Status& status) HVD_EXCLUDES(mutex_);
  Status told(Status status) HVD_EXCLUDES(mutex_) {
    telling(status);
    return status;
  }
  // Whose leaving closes a set; before the set is closed.
  void note_leaver(int rank) { leaver_.store(rank, std::memory_order_release); }
  // A program that begins anew has got over what failed before.
  void forget_note() { note_.clear(); }

  // True once: the ring of last operations is printed with the first failure alone.
  bool take_record() HVD_EXCLUDES(mutex_);

 private:
  shm::Job& job_;
  mirror::Mirror* const mirror_;
  LocalWaiters& waiters_;
  std::atomic<bool> is_broken_{false};   // failure_ is set
  std::atomic<bool> is_closing_{false};  // no new submissions
  Mutex mutex_;
  Status failure_ HVD_GUARDED_BY(mutex_);
  bool record_is_taken_ HVD_GUARDED_BY(mutex_) = false;
  // Stored before a set is closed, loaded when its operations end.
  std::atomic<int> leaver_{-1};
  const FailureNoteWriter note_;
  std::atomic<bool> is_note_left_{false};  // whoever raises it writes the note
};

}  // namespace hvd::engine
