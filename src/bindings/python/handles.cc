#include "bindings/python/handles.h"

#include <utility>
#include <vector>

#include "bindings/python/arguments.h"
#include "bindings/python/errors.h"
#include "bindings/python/functions.h"
#include "bindings/python/waiting.h"

namespace hvd::python {
namespace {

// How many abandoned operations one call looks at: looking must not grow with their number.
constexpr int kLooksPerSweep = 4;

PyObject* raise_unknown(hvd_handle handle) {
  PyErr_Format(PyExc_ValueError, "handle %llu is unknown: never given out, or released",
               static_cast<unsigned long long>(handle));
  return nullptr;
}

}  // namespace

Handles& Handles::instance() {
  static auto* const handles = new Handles();  // NOLINT: never destroyed, on purpose
  return *handles;
}

void Handles::add(hvd_handle handle, PyObject* owner) {
  if (owner == Py_None) owner = nullptr;
  held_.insert_or_assign(handle, Held{owner, false});
  Py_XINCREF(owner);
}

void Handles::mark_done(hvd_handle handle) {
  if (const auto held = held_.find(handle); held != held_.end()) held->second.is_done = true;
}

bool Handles::is_complete(hvd_handle handle) const {
  if (is_shutting_down_) return false;
  // The first poll says nothing about success. Any other answer means that no engine works on it:
  // done, failed, or the engine is gone.
  hvd_status status = hvd_poll(handle);
  if (status == HVD_IN_PROGRESS) status = hvd_poll(handle);
  return status != HVD_IN_PROGRESS;
}

bool Handles::release(hvd_handle handle) {
  const auto found = held_.find(handle);
  if (found == held_.end()) return false;
  const Held held = found->second;
  held_.erase(found);
  if (held.owner == nullptr || held.is_done || is_complete(handle)) {
    (void)hvd_release(handle);  // unknown after a shutdown, which has freed it
    Py_XDECREF(held.owner);
  } else {
    abandoned_.push_back({handle, held.owner});
  }
  sweep();
  return true;
}

void Handles::sweep_abandoned() {
  std::vector<PyObject*> owners;
  for (int looks = 0; looks < kLooksPerSweep && !abandoned_.empty(); ++looks) {
    const Abandoned first = abandoned_.front();
    abandoned_.pop_front();
    if (is_complete(first.handle)) {
      (void)hvd_release(first.handle);
      owners.push_back(first.owner);
    } else {
      abandoned_.push_back(first);
    }
  }
  for (PyObject* owner : owners) Py_DECREF(owner);
}

void Handles::shutdown_ends() {
  is_shutting_down_ = false;
  std::vector<PyObject*> owners;
  for (const Abandoned& one : abandoned_) owners.push_back(one.owner);
  abandoned_.clear();
  for (auto& [handle, held] : held_) {
    held.is_done = true;
    if (held.owner != nullptr) owners.push_back(std::exchange(held.owner, nullptr));
  }
  for (PyObject* owner : owners) Py_DECREF(owner);
}

void abandon(hvd_handle handle, PyObject* owner) {
  // The exception that is set must survive whatever a destructor does.
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  Handles::instance().add(handle, owner);
  Handles::instance().release(handle);
  PyErr_Restore(type, value, traceback);
}

std::optional<hvd_status> wait_for(hvd_handle handle, int64_t timeout_ns) {
  const auto status = wait_in_slices(
      [&](int64_t nanoseconds) { return hvd_wait(handle, nanoseconds); }, timeout_ns);
  // PRECONDITION: perhaps no statement about the operation, but a shutdown that has begun.
  const bool is_final = status && *status != HVD_TIMED_OUT && *status != HVD_PRECONDITION_ERROR;
  if (is_final) Handles::instance().mark_done(handle);
  return status;
}

PyObject* poll(Arguments arguments) {
  Reader reader(arguments);
  const hvd_handle handle = reader.handle(0);
  if (reader.failed()) return nullptr;
  if (!Handles::instance().knows(handle)) return raise_unknown(handle);
  // A poll makes a step, which may move much data.
  const hvd_status status = without_gil([&] { return hvd_poll(handle); });
  if (status == HVD_IN_PROGRESS) Py_RETURN_FALSE;
  if (status != HVD_PRECONDITION_ERROR) Handles::instance().mark_done(handle);
  Py_RETURN_TRUE;
}

PyObject* wait(Arguments arguments) {
  Reader reader(arguments);
  const hvd_handle handle = reader.handle(0);
  const int64_t timeout_ns = reader.timeout_ns(1);
  if (reader.failed()) return nullptr;
  if (!Handles::instance().knows(handle)) return raise_unknown(handle);
  const auto status = wait_for(handle, timeout_ns);
  if (!status) return nullptr;
  if (*status == HVD_OK) Py_RETURN_TRUE;
  if (*status == HVD_TIMED_OUT) Py_RETURN_FALSE;
  return raise_last(*status);
}

PyObject* wait_many(Arguments arguments) {
  Reader reader(arguments);
  std::vector<hvd_handle> handles;
  reader.for_each(reader.object(0),
                  [&](PyObject* item) { handles.push_back(reader.to_handle(item)); });
  const int64_t timeout_ns = reader.timeout_ns(1);
  if (reader.failed()) return nullptr;
  for (const hvd_handle handle : handles) {
    if (!Handles::instance().knows(handle)) return raise_unknown(handle);
  }
  const auto look = [&](int64_t nanoseconds) {
    return hvd_wait_many(handles.data(), handles.size(), nanoseconds);
  };
  const auto status = wait_in_slices(look, timeout_ns);
  if (!status) return nullptr;
  if (*status == HVD_TIMED_OUT) Py_RETURN_FALSE;
  if (*status != HVD_PRECONDITION_ERROR) {
    for (const hvd_handle handle : handles) Handles::instance().mark_done(handle);
  }
  if (*status != HVD_OK) return raise_last(*status);
  Py_RETURN_TRUE;
}

PyObject* release(Arguments arguments) {
  Reader reader(arguments);
  const hvd_handle handle = reader.handle(0);
  if (reader.failed()) return nullptr;
  if (!Handles::instance().release(handle)) return raise_unknown(handle);
  Py_RETURN_NONE;
}

}  // namespace hvd::python
