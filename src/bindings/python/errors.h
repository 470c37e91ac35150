// errors.h - a status of the core as a Python exception. Needs the GIL.
#pragma once

#include "bindings/python/api.h"

#include "horovod/hvd.h"

namespace hvd::python {

// Sets the exception for a failed call: ValueError for INVALID_ARGUMENT, else the class given to
// set_error_class. Returns null, so that a function can return what this returns.
PyObject* raise(hvd_status status, const char* message);
// The same with the text of this thread's last failing call.
PyObject* raise_last(hvd_status status);
// None, or the exception of raise_last.
PyObject* none_or_raise(hvd_status status);

}  // namespace hvd::python
