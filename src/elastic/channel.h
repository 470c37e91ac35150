// channel.h - the worker's end of the socket pair to the launcher of an elastic job.
// Thread: any; calls exclude each other, except that await_assignment waits without the lock. Only
// await_assignment blocks. A child of fork() has none: what comes is for its parent.
#pragma once

#include <sys/types.h>

#include <vector>

#include "base/fd.h"
#include "base/interrupt.h"
#include "base/settings.h"
#include "base/status.h"
#include "base/thread_annotations.h"
#include "elastic/inbox.h"
#include "elastic/message.h"

namespace hvd::elastic {

class Channel {
 public:
  // Takes the descriptor that the environment names. Not valid: this is no elastic job. A number
  // that is no socket is a failure that names the variable.
  static Result<UniqueFd> find(const Environment& environment);
  explicit Channel(UniqueFd socket);

  bool is_active() const;

  // Says that this process wants to be in the next world after `epoch`, because of `why`, and waits
  // for its place there: for as long as the launcher lives, which alone knows how long that may
  // take and ends who waits in vain. REMOVED with the reason if it has no place, SHUT_DOWN when the
  // launcher has gone. One that was in no world yet and is asked to leave has nothing to finish: it
  // reports that it leaves, and the answer is REMOVED.
  Result<Assign> await_assignment(uint64_t epoch, const std::string& why) HVD_EXCLUDES(mutex_);

  // For whoever waits for the other members of `epoch`: fails when the launcher says that it is
  // broken, and hears which of them were waited for in vain, which the next Ready says. The channel
  // must outlive it.
  Interrupt interrupt_for(uint64_t epoch);

  News look() HVD_EXCLUDES(mutex_);
  bool is_asked_to_leave() HVD_EXCLUDES(mutex_);
  Status tell(const Report& report);

  // The process that started this one.
  pid_t launcher() const { return launcher_; }

 private:
  Status send(const ToLauncher& message) const;
  Status take_all() HVD_EXCLUDES(mutex_);
  Status leave_early();
  Status check_unbroken(uint64_t epoch) HVD_EXCLUDES(mutex_);
  void note_missed(int32_t rank) HVD_EXCLUDES(mutex_);
  std::vector<int32_t> take_missed() HVD_EXCLUDES(mutex_);

  const UniqueFd socket_;
  const pid_t owner_;
  pid_t launcher_ = 0;
  Mutex mutex_;
  Inbox inbox_ HVD_GUARDED_BY(mutex_);
  std::vector<int32_t> missed_ HVD_GUARDED_BY(mutex_);  // since the last Ready
};

}  // namespace hvd::elastic
