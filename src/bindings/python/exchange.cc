#include "bindings/python/exchange.h"

#include <algorithm>
#include <cstring>

namespace hvd::python {
namespace {

constexpr int32_t kTimeIsOver = 1;
constexpr int32_t kCallerLeft = 2;

}  // namespace

hvd_exchange Exchange::functions() {
  return {
      .context = this,
      .set = [](void* context, const char* key, const void* value,
                size_t bytes) { return static_cast<Exchange*>(context)->set(key, value, bytes); },
      .get =
          [](void* context, const char* key, void* buffer, size_t capacity, size_t* bytes,
             int64_t timeout_ns) {
            return static_cast<Exchange*>(context)->get(key, buffer, capacity, bytes, timeout_ns);
          }};
}

int32_t Exchange::set(const char* key, const void* value, size_t bytes) {
  const auto reply = conversation_.ask([&]() -> int32_t {
    PyObject* const copy =
        PyBytes_FromStringAndSize(static_cast<const char*>(value), static_cast<Py_ssize_t>(bytes));
    if (copy == nullptr) return 0;
    Py_XDECREF(PyObject_CallMethod(store_, "set", "sN", key, copy));  // takes the reference
    return 0;
  });
  return reply.value_or(kCallerLeft);
}

int32_t Exchange::get(const char* key, void* buffer, size_t capacity, size_t* bytes,
                      int64_t timeout_ns) {
  const auto reply = conversation_.ask([&]() -> int32_t {
    PyObject* const result =
        PyObject_CallMethod(store_, "get", "sd", key, static_cast<double>(timeout_ns) * 1e-9);
    if (result == nullptr) return 0;
    char* data = nullptr;
    Py_ssize_t length = 0;
    int32_t code = kTimeIsOver;
    if (result != Py_None && PyBytes_AsStringAndSize(result, &data, &length) == 0) {
      *bytes = static_cast<size_t>(length);
      std::memcpy(buffer, data, std::min(capacity, *bytes));
      code = 0;
    }
    Py_DECREF(result);
    return code;
  });
  return reply.value_or(kCallerLeft);
}

void Exchange::remove(void* context, const char* key) {
  const Exchange& self = *static_cast<Exchange*>(context);
  (void)self.conversation_.ask([&]() -> int32_t {
    if (PyObject_HasAttrString(self.store_, "remove") != 0) {
      PyObject* const result = PyObject_CallMethod(self.store_, "remove", "s", key);
      if (result == nullptr && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();
      Py_XDECREF(result);
    }
    return 0;
  });
}

}  // namespace hvd::python
