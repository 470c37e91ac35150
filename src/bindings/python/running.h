// running.h - submit and wait in one call. On the usual path the GIL is given back once, and no
// table is touched: the caller's own references keep the owner alive.
#pragma once

#include "bindings/python/errors.h"
#include "bindings/python/handles.h"
#include "bindings/python/waiting.h"

namespace hvd::python {

inline hvd_status nothing_more(hvd_handle) { return HVD_OK; }

// submit(&handle), wait, finish(handle) after success, release. None, or null with an exception.
// Interrupted or out of time: the operation goes on, and keeps the owner until it is complete.
template <typename Submit, typename Finish = hvd_status (*)(hvd_handle)>
PyObject* run_to_end(const Submit& submit, PyObject* owner, int64_t timeout_ns = HVD_FOREVER,
                     const Finish& finish = nothing_more) {
  Handles::instance().sweep();
  hvd_handle handle = 0;
  const auto look = [&](int64_t nanoseconds) {
    if (handle == 0) {
      if (const hvd_status status = submit(&handle); status != HVD_OK) return status;
    }
    hvd_status status = hvd_wait(handle, nanoseconds);
    if (status == HVD_OK) {
      status = finish(handle);
      (void)hvd_release(handle);
      handle = 0;
    }
    return status;
  };
  const auto status = wait_in_slices(look, timeout_ns);
  if (status && *status == HVD_OK) Py_RETURN_NONE;
  // First the exception, because releasing may change the text of the last error.
  if (status) raise_last(*status);
  if (handle != 0) abandon(handle, owner);
  return nullptr;
}

}  // namespace hvd::python
