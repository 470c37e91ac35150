#include "bindings/python/errors.h"

#include "bindings/python/functions.h"

namespace hvd::python {
namespace {

constexpr hvd_status kLastStatus = HVD_REMOVED;

// Guarded by the GIL; null: RuntimeError.
PyObject* error_class = nullptr;

}  // namespace

PyObject* raise(hvd_status status, const char* message) {
  PyObject* type = status == HVD_INVALID_ARGUMENT ? PyExc_ValueError
                   : error_class != nullptr       ? error_class
                                                  : PyExc_RuntimeError;
  Py_INCREF(type);  // the class may be replaced while its constructor runs
  // Names and paths inside a message need not be valid text.
  PyObject* const text =
      PyUnicode_DecodeUTF8(message, static_cast<Py_ssize_t>(__builtin_strlen(message)), "replace");
  PyObject* const error =
      text == nullptr ? nullptr : PyObject_CallFunctionObjArgs(type, text, nullptr);
  PyObject* const number = PyLong_FromLong(status);
  if (error != nullptr && number != nullptr &&
      PyObject_SetAttrString(error, "status", number) == 0) {
    PyErr_SetObject(type, error);
  }
  Py_XDECREF(text);
  Py_XDECREF(error);
  Py_XDECREF(number);
  Py_DECREF(type);
  return nullptr;
}

PyObject* raise_last(hvd_status status) { return raise(status, hvd_last_error()); }

PyObject* none_or_raise(hvd_status status) {
  if (status != HVD_OK) return raise_last(status);
  Py_RETURN_NONE;
}

PyObject* set_error_class(Arguments arguments) {
  PyObject* const type = arguments[0];
  if (PyType_Check(type) == 0 || PyObject_IsSubclass(type, PyExc_Exception) != 1) {
    if (PyErr_Occurred() == nullptr)
      PyErr_Format(PyExc_TypeError, "error class: expected a subclass of Exception, got %R", type);
    return nullptr;
  }
  Py_INCREF(type);
  PyObject* const before = error_class;
  error_class = type;
  Py_XDECREF(before);
  Py_RETURN_NONE;
}

PyObject* status_names(Arguments) {
  PyObject* const names = PyDict_New();
  for (int status = HVD_OK; names != nullptr && status <= kLastStatus; ++status) {
    PyObject* const number = PyLong_FromLong(status);
    PyObject* const name = PyUnicode_FromString(hvd_status_name(static_cast<hvd_status>(status)));
    const bool stored =
        number != nullptr && name != nullptr && PyDict_SetItem(names, number, name) == 0;
    Py_XDECREF(number);
    Py_XDECREF(name);
    if (!stored) {
      Py_DECREF(names);
      return nullptr;
    }
  }
  return names;
}

}  // namespace hvd::python
