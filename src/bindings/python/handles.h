// handles.h - the handles that Python holds, and what each keeps alive. Guarded by the GIL.
// An owner lives until its operation is complete, whatever became of the handle: a handle that is
// released too early is kept here and looked at by later calls. No completion callback is used for
// this, because the core runs operations with a callback in its background thread.
#pragma once

#include "bindings/python/api.h"

#include <deque>
#include <optional>
#include <unordered_map>

#include "horovod/hvd.h"

namespace hvd::python {

class Handles {
 public:
  // Never destroyed: the interpreter may end while operations run.
  static Handles& instance();

  void add(hvd_handle handle, PyObject* owner);
  bool knows(hvd_handle handle) const { return held_.count(handle) != 0; }
  // The operation is known to be complete: release need not look.
  void mark_done(hvd_handle handle);
  // False: unknown. Runs destructors of Python objects, so nothing may be assumed afterwards.
  bool release(hvd_handle handle);
  // Lets go of what is complete by now. Cheap with nothing to do; every submission calls it.
  void sweep() {
    if (!abandoned_.empty() && !is_shutting_down_) sweep_abandoned();
  }
  // While shutdown runs, the core refuses calls but still finishes operations: nothing counts as
  // complete. Afterwards no operation touches a buffer any more.
  void shutdown_begins() { is_shutting_down_ = true; }
  void shutdown_ends();

 private:
  struct Held {
    PyObject* owner;  // null for None
    bool is_done;
  };
  struct Abandoned {
    hvd_handle handle;
    PyObject* owner;
  };
  bool is_complete(hvd_handle handle) const;
  void sweep_abandoned();

  std::unordered_map<hvd_handle, Held> held_;
  std::deque<Abandoned> abandoned_;
  bool is_shutting_down_ = false;
};

// Lets go of a handle that was never added: what `release` does for one that was.
void abandon(hvd_handle handle, PyObject* owner);

// Waits in slices. No value: interrupted.
std::optional<hvd_status> wait_for(hvd_handle handle, int64_t timeout_ns);

}  // namespace hvd::python
