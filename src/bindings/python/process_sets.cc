// Process sets: ids, and the negative codes of hvd.h, which the front end turns into exceptions.
#include "bindings/python/functions.h"

#include <string>
#include <vector>

#include "bindings/python/arguments.h"
#include "bindings/python/errors.h"
#include "bindings/python/waiting.h"

namespace hvd::python {
namespace {

PyObject* with_id(Arguments arguments, int32_t (*ask)(int32_t)) {
  Reader reader(arguments);
  const int32_t id = reader.int32(0);
  if (reader.failed()) return nullptr;
  return PyLong_FromLong(ask(id));
}

// Reads a list whose length may change between asking and reading.
template <typename Ask>
PyObject* read_list(const Ask& ask, const char* what) {
  std::vector<int32_t> values;
  for (;;) {
    const int32_t count = ask(values.data(), static_cast<int32_t>(values.size()));
    if (count == HVD_PROCESS_SET_ERROR_INIT)
      return raise(HVD_PRECONDITION_ERROR, "Horovod has not been initialized; use hvd.init()");
    if (count < 0) {
      PyErr_Format(PyExc_ValueError, "%s: there is no such process set", what);
      return nullptr;
    }
    const bool fits = static_cast<size_t>(count) <= values.size();
    values.resize(static_cast<size_t>(count));
    if (fits) return to_int_list(values.data(), values.size());
  }
}

// Sets that members open among themselves raise, because only this side knows the reason.
hvd_status status_of(int32_t code) {
  switch (code) {
    case HVD_PROCESS_SET_ERROR_INIT:
      return HVD_PRECONDITION_ERROR;
    case HVD_PROCESS_SET_ERROR_SHUTDOWN:
      return HVD_SHUT_DOWN;
    case HVD_PROCESS_SET_ERROR_TIMED_OUT:
      return HVD_TIMED_OUT;
    case HVD_PROCESS_SET_ERROR_FULL:
      return HVD_OUT_OF_MEMORY;
    default:
      return HVD_INVALID_ARGUMENT;
  }
}

}  // namespace

PyObject* process_set_add(Arguments arguments) {
  Reader reader(arguments);
  Numbers ranks;
  reader.numbers(0, ranks);
  if (reader.failed()) return nullptr;
  const auto answer =
      call_interruptibly([all = std::vector<int32_t>(ranks.data(), ranks.data() + ranks.count())] {
        return hvd_process_set_add(all.data(), static_cast<int32_t>(all.size()));
      });
  if (!answer) return nullptr;
  // The reasons are many, and only the core knows which one it is.
  if (answer->value == HVD_PROCESS_SET_ERROR_UNKNOWN_SET) {
    return raise(HVD_INVALID_ARGUMENT, answer->error.c_str());
  }
  return PyLong_FromLong(answer->value);
}

PyObject* process_set_remove(Arguments arguments) {
  Reader reader(arguments);
  const int32_t id = reader.int32(0);
  if (reader.failed()) return nullptr;
  // Waits for all ranks, without a deadline.
  const auto answer = call_interruptibly([id] { return hvd_process_set_remove(id); });
  return answer ? PyLong_FromLong(answer->value) : nullptr;
}

PyObject* process_set_rank(Arguments arguments) { return with_id(arguments, hvd_process_set_rank); }
PyObject* process_set_size(Arguments arguments) { return with_id(arguments, hvd_process_set_size); }
PyObject* process_set_included(Arguments arguments) {
  return with_id(arguments, hvd_process_set_included);
}

PyObject* process_set_ids(Arguments) { return read_list(hvd_process_set_ids, "process set ids"); }

PyObject* process_set_ranks(Arguments arguments) {
  Reader reader(arguments);
  const int32_t id = reader.int32(0);
  if (reader.failed()) return nullptr;
  return read_list(
      [id](int32_t* ranks, int32_t capacity) { return hvd_process_set_ranks(id, ranks, capacity); },
      "process set ranks");
}

PyObject* process_set_meet(Arguments arguments) {
  Reader reader(arguments);
  Numbers ranks;
  const char* const key = reader.text(0);
  reader.numbers(1, ranks);
  const int64_t timeout_ns = reader.timeout_ns(2);
  if (reader.failed()) return nullptr;
  // A call that is given up leaves the meeting, and so cannot be done in slices.
  const auto answer = call_interruptibly(
      [key = std::string(key == nullptr ? "" : key),
       all = std::vector<int32_t>(ranks.data(), ranks.data() + ranks.count()), timeout_ns] {
        return hvd_process_set_meet(key.c_str(), all.data(), static_cast<int32_t>(all.size()),
                                    timeout_ns);
      });
  if (!answer) return nullptr;
  if (answer->value < 0) return raise(status_of(answer->value), answer->error.c_str());
  return PyLong_FromLong(answer->value);
}

PyObject* process_set_leave(Arguments arguments) {
  Reader reader(arguments);
  const int32_t id = reader.int32(0);
  if (reader.failed()) return nullptr;
  return none_or_raise(without_gil([&] { return hvd_process_set_leave(id); }));
}

}  // namespace hvd::python
