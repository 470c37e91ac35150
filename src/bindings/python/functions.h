// functions.h - the functions of _native.pyi, by the file that holds them, and how Python calls
// them. Each gets as many arguments as entry() says, holds the GIL, and returns a new reference or
// null with an exception set.
#pragma once

#include "bindings/python/api.h"

#include <algorithm>
#include <array>
#include <exception>
#include <new>

namespace hvd::python {

using Arguments = PyObject* const*;
using Function = PyObject* (*)(Arguments);
using KeywordFunction = PyObject* (*)(Arguments values, Py_ssize_t positional, PyObject* names);

// errors.cc
PyObject* set_error_class(Arguments);
PyObject* status_names(Arguments);

// life_cycle.cc
PyObject* init(Arguments);
PyObject* init_mpi(Arguments);
PyObject* shutdown(Arguments);
PyObject* is_initialized(Arguments);
PyObject* rank(Arguments);
PyObject* size(Arguments);
PyObject* local_rank(Arguments);
PyObject* local_size(Arguments);
PyObject* cross_rank(Arguments);
PyObject* cross_size(Arguments);
PyObject* is_homogeneous(Arguments);
PyObject* mpi_threads(Arguments);

// elastic.cc
PyObject* elastic_is_active(Arguments);
PyObject* elastic_epoch(Arguments);
PyObject* elastic_look(Arguments);
PyObject* elastic_report(Arguments);

// submissions.cc. The first three take keywords, see request_arguments.h.
PyObject* submit(Arguments values, Py_ssize_t positional, PyObject* names);
PyObject* run(Arguments values, Py_ssize_t positional, PyObject* names);
PyObject* submit_group(Arguments values, Py_ssize_t positional, PyObject* names);
PyObject* barrier(Arguments);
PyObject* join(Arguments);

// prepared.cc: the type Prepared, a new reference
PyObject* make_prepared_type(PyObject* module);

// handles.cc
PyObject* poll(Arguments);
PyObject* wait(Arguments);
PyObject* wait_many(Arguments);
PyObject* release(Arguments);

// completions.cc
PyObject* next_completed(Arguments);

// outputs.cc
PyObject* output_shape(Arguments);
PyObject* received_splits(Arguments);
PyObject* take_output(Arguments);
PyObject* order(Arguments);
PyObject* nccl_version(Arguments);
PyObject* device_count(Arguments);
PyObject* buffer_alloc(Arguments);
PyObject* buffer_contains(Arguments);

// process_sets.cc
PyObject* process_set_add(Arguments);
PyObject* process_set_remove(Arguments);
PyObject* process_set_rank(Arguments);
PyObject* process_set_size(Arguments);
PyObject* process_set_included(Arguments);
PyObject* process_set_ids(Arguments);
PyObject* process_set_ranks(Arguments);
PyObject* process_set_meet(Arguments);
PyObject* process_set_leave(Arguments);

// observation.cc
PyObject* version(Arguments);
PyObject* library_path(Arguments);
PyObject* capabilities(Arguments);
PyObject* timeline_start(Arguments);
PyObject* timeline_stop(Arguments);
PyObject* stats(Arguments);
PyObject* recent_operations(Arguments);
PyObject* set_stall_signal(Arguments);

// sealing.cc
PyObject* seal(Arguments);
PyObject* unseal(Arguments);

// The catch clauses name their types: a thread that asks for the GIL while the interpreter ends is
// unwound by force, and `catch (...)` would make that fatal.
template <typename Call>
PyObject* without_exceptions(const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

inline bool has_count(Py_ssize_t given, Py_ssize_t expected) {
  if (given == expected) return true;
  PyErr_Format(PyExc_TypeError, "expected %zd arguments, got %zd", expected, given);
  return false;
}

// What METH_FASTCALL calls.
template <Function function, Py_ssize_t count>
PyObject* entry(PyObject* /*module*/, Arguments arguments, Py_ssize_t given) {
  if (!has_count(given, count)) return nullptr;
  return without_exceptions([&] { return function(arguments); });
}

// What METH_FASTCALL | METH_KEYWORDS calls.
template <KeywordFunction function>
PyObject* keyword_entry(PyObject* /*module*/, Arguments values, Py_ssize_t positional,
                        PyObject* names) {
  return without_exceptions([&] { return function(values, positional, names); });
}

// As entry(), where the last arguments may be left out: they are None.
template <Function function, Py_ssize_t least, Py_ssize_t most>
PyObject* entry(PyObject* /*module*/, Arguments arguments, Py_ssize_t given) {
  if (given > most || given < least) {
    PyErr_Format(PyExc_TypeError, "expected %zd to %zd arguments, got %zd", least, most, given);
    return nullptr;
  }
  std::array<PyObject*, most> all;
  all.fill(Py_None);
  std::copy_n(arguments, given, all.begin());
  return without_exceptions([&] { return function(all.data()); });
}

}  // namespace hvd::python
