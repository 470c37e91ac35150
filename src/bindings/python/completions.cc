#include "bindings/python/completions.h"

#include <chrono>

#include "bindings/python/arguments.h"
#include "bindings/python/functions.h"
#include "bindings/python/waiting.h"

namespace hvd::python {

Completions& Completions::instance() {
  static auto* const completions = new Completions();  // NOLINT: never destroyed, on purpose
  return *completions;
}

void Completions::open() {
  const std::lock_guard lock(mutex_);
  is_open_ = true;
}

void Completions::close() {
  {
    const std::lock_guard lock(mutex_);
    is_open_ = false;
  }
  changed_.notify_all();
}

void Completions::push(hvd_handle handle) {
  {
    const std::lock_guard lock(mutex_);
    done_.push_back(handle);
  }
  changed_.notify_one();
}

hvd_status Completions::pop(hvd_handle& out, int64_t timeout_ns) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns),
                    [&] { return !done_.empty() || !is_open_; });
  if (!done_.empty()) {
    out = done_.front();
    done_.pop_front();
    return HVD_OK;
  }
  return is_open_ ? HVD_TIMED_OUT : HVD_SHUT_DOWN;
}

void report_completion(void*, hvd_handle handle, hvd_status, const char*) {
  Completions::instance().push(handle);
}

PyObject* next_completed(Arguments arguments) {
  Reader reader(arguments);
  const int64_t timeout_ns = reader.timeout_ns(0);
  if (reader.failed()) return nullptr;
  hvd_handle handle = 0;
  const auto status = wait_in_slices(
      [&](int64_t nanoseconds) { return Completions::instance().pop(handle, nanoseconds); },
      timeout_ns);
  if (!status) return nullptr;
  if (*status != HVD_OK) Py_RETURN_NONE;
  return PyLong_FromUnsignedLongLong(handle);
}

}  // namespace hvd::python
