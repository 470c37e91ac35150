// arguments.h - Python objects to C values. Needs the GIL.
// A Reader remembers the first failure (a Python exception is set) and answers zeros from then on,
// so that a function reads all its arguments and looks once.
#pragma once

#include "bindings/python/api.h"

#include <array>
#include <cstdint>
#include <vector>

#include "horovod/hvd.h"

namespace hvd::python {

// A shape or a list of splits; the usual few entries need no memory of their own.
template <typename T>
class ShortList {
 public:
  T* reserve(size_t count) {
    count_ = count;
    if (count <= few_.size()) return few_.data();
    many_.resize(count);
    return many_.data();
  }
  const T* data() const { return count_ <= few_.size() ? few_.data() : many_.data(); }
  int32_t count() const { return static_cast<int32_t>(count_); }

 private:
  std::array<T, 8> few_;
  std::vector<T> many_;
  size_t count_ = 0;
};
using Shape = ShortList<int64_t>;
using Numbers = ShortList<int32_t>;

class Reader {
 public:
  explicit Reader(PyObject* const* arguments) : arguments_(arguments) {}

  // Sets a ValueError: `format` with one %R.
  void reject(const char* format, PyObject* object) {
    PyErr_Format(PyExc_ValueError, format, object);
    fail();
  }
  bool failed() const { return failed_; }
  PyObject* object(int index) const { return arguments_[index]; }
  bool is_none(int index) const { return arguments_[index] == Py_None; }

  int32_t int32(int index) { return to_int32(arguments_[index]); }
  size_t index(int index);
  bool flag(int index) { return to_flag(arguments_[index]); }
  double real(int index) { return to_real(arguments_[index]); }
  void* address(int index) { return to_address(arguments_[index]); }
  hvd_handle handle(int index) { return to_handle(arguments_[index]); }
  // Null for None. Valid as long as the argument.
  const char* text(int index) { return to_text(arguments_[index]); }
  // Seconds; None: HVD_FOREVER.
  int64_t timeout_ns(int index);
  void shape(int index, Shape& out) { to_list(arguments_[index], out); }
  void numbers(int index, Numbers& out) { to_list(arguments_[index], out); }

  // The same for items of a sequence.
  int32_t to_int32(PyObject* object);
  int64_t to_int64(PyObject* object);
  bool to_flag(PyObject* object);
  double to_real(PyObject* object);
  void* to_address(PyObject* object);
  hvd_handle to_handle(PyObject* object);
  const char* to_text(PyObject* object);
  void to_list(PyObject* object, Shape& out);
  void to_list(PyObject* object, Numbers& out);
  // Calls each(item) with a borrowed reference; stops at a failure.
  template <typename Each>
  void for_each(PyObject* sequence, const Each& each);

 private:
  struct Items {  // a list or a tuple
    PyObject* object = nullptr;
    Py_ssize_t count = 0;
    bool is_tuple = false;
    PyObject* at(Py_ssize_t i) const {
      return is_tuple ? PyTuple_GetItem(object, i) : PyList_GetItem(object, i);
    }
  };
  Items open(PyObject* sequence);
  void fail() { failed_ = true; }

  PyObject* const* arguments_;
  bool failed_ = false;
};

template <typename Each>
void Reader::for_each(PyObject* sequence, const Each& each) {
  const Items items = open(sequence);
  if (failed_) return;
  for (Py_ssize_t i = 0; i < items.count && !failed_; ++i) {
    PyObject* const item = items.at(i);
    if (item == nullptr) fail();  // a list that shrank while it was read
    if (!failed_) each(item);
  }
  Py_DECREF(items.object);
}

// New references.
PyObject* to_tuple(const int64_t* values, size_t count);
PyObject* to_tuple(const int32_t* values, size_t count);
PyObject* to_int_list(const int32_t* values, size_t count);

}  // namespace hvd::python
