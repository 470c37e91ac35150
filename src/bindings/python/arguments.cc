#include "bindings/python/arguments.h"

#include <cmath>
#include <cstring>

namespace hvd::python {
namespace {

constexpr double kNanosecondsPerSecond = 1e9;

template <typename T, typename Make>
PyObject* tuple_of(const T* values, size_t count, const Make& make) {
  PyObject* const tuple = PyTuple_New(static_cast<Py_ssize_t>(count));
  if (tuple == nullptr) return nullptr;
  for (size_t i = 0; i < count; ++i) {
    PyObject* const item = make(values[i]);
    if (item == nullptr || PyTuple_SetItem(tuple, static_cast<Py_ssize_t>(i), item) != 0) {
      Py_DECREF(tuple);
      return nullptr;
    }
  }
  return tuple;
}

}  // namespace

int64_t Reader::to_int64(PyObject* object) {
  if (failed_) return 0;
  const long long value = PyLong_AsLongLong(object);
  if (value == -1 && PyErr_Occurred() != nullptr) fail();
  return value;
}

int32_t Reader::to_int32(PyObject* object) {
  const int64_t value = to_int64(object);
  if (failed_) return 0;
  if (value < INT32_MIN || value > INT32_MAX) {
    PyErr_Format(PyExc_OverflowError, "expected a number of 32 bits, got %lld",
                 static_cast<long long>(value));
    fail();
  }
  return static_cast<int32_t>(value);
}

size_t Reader::index(int index) {
  const int64_t value = to_int64(arguments_[index]);
  if (!failed_ && value < 0) {
    PyErr_Format(PyExc_ValueError, "expected an index or a size, got %lld",
                 static_cast<long long>(value));
    fail();
  }
  return static_cast<size_t>(value);
}

bool Reader::to_flag(PyObject* object) {
  if (failed_) return false;
  const int value = PyObject_IsTrue(object);
  if (value < 0) fail();
  return value > 0;
}

double Reader::to_real(PyObject* object) {
  if (failed_) return 0;
  const double value = PyFloat_AsDouble(object);
  if (value == -1.0 && PyErr_Occurred() != nullptr) fail();
  return value;
}

void* Reader::to_address(PyObject* object) {
  if (failed_) return nullptr;
  void* const value = PyLong_AsVoidPtr(object);
  if (value == nullptr && PyErr_Occurred() != nullptr) fail();
  return value;
}

hvd_handle Reader::to_handle(PyObject* object) {
  if (failed_) return 0;
  const unsigned long long value = PyLong_AsUnsignedLongLong(object);
  if (value == static_cast<unsigned long long>(-1) && PyErr_Occurred() != nullptr) fail();
  return value;
}

const char* Reader::to_text(PyObject* object) {
  if (failed_ || object == Py_None) return nullptr;
  Py_ssize_t length = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(object, &length);
  if (text == nullptr) {
    fail();
  } else if (std::strlen(text) != static_cast<size_t>(length)) {
    PyErr_Format(PyExc_ValueError, "expected text without null characters, got %R", object);
    fail();
  }
  return failed_ ? nullptr : text;
}

int64_t Reader::timeout_ns(int index) {
  if (failed_ || is_none(index)) return HVD_FOREVER;
  const double seconds = real(index);
  if (failed_) return 0;
  if (std::isnan(seconds)) {
    PyErr_SetString(PyExc_ValueError, "timeout: expected seconds or None, got nan");
    fail();
    return 0;
  }
  const double nanoseconds = seconds * kNanosecondsPerSecond;
  if (nanoseconds >= static_cast<double>(HVD_FOREVER)) return HVD_FOREVER;
  return nanoseconds > 0 ? static_cast<int64_t>(nanoseconds) : 0;
}

Reader::Items Reader::open(PyObject* sequence) {
  Items items;
  if (failed_) return items;
  // Tuples and lists come back as they are.
  items.object = PySequence_Fast(sequence, "expected a sequence");
  if (items.object == nullptr) {
    fail();
    return items;
  }
  items.is_tuple = PyTuple_Check(items.object) != 0;
  items.count = items.is_tuple ? PyTuple_Size(items.object) : PyList_Size(items.object);
  return items;
}

void Reader::to_list(PyObject* object, Shape& out) {
  const Items items = open(object);
  if (failed_) return;
  int64_t* const values = out.reserve(static_cast<size_t>(items.count));
  for (Py_ssize_t i = 0; i < items.count && !failed_; ++i) {
    PyObject* const item = items.at(i);
    if (item == nullptr) fail();
    values[i] = to_int64(item);
  }
  Py_DECREF(items.object);
}

void Reader::to_list(PyObject* object, Numbers& out) {
  const Items items = open(object);
  if (failed_) return;
  int32_t* const values = out.reserve(static_cast<size_t>(items.count));
  for (Py_ssize_t i = 0; i < items.count && !failed_; ++i) {
    PyObject* const item = items.at(i);
    if (item == nullptr) fail();
    values[i] = to_int32(item);
  }
  Py_DECREF(items.object);
}

PyObject* to_tuple(const int64_t* values, size_t count) {
  return tuple_of(values, count, [](int64_t value) { return PyLong_FromLongLong(value); });
}

PyObject* to_tuple(const int32_t* values, size_t count) {
  return tuple_of(values, count, [](int32_t value) { return PyLong_FromLong(value); });
}

PyObject* to_int_list(const int32_t* values, size_t count) {
  PyObject* const list = PyList_New(static_cast<Py_ssize_t>(count));
  if (list == nullptr) return nullptr;
  for (size_t i = 0; i < count; ++i) {
    PyObject* const item = PyLong_FromLong(values[i]);
    if (item == nullptr || PyList_SetItem(list, static_cast<Py_ssize_t>(i), item) != 0) {
      Py_DECREF(list);
      return nullptr;
    }
  }
  return list;
}

}  // namespace hvd::python
