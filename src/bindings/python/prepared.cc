// The type Prepared: an operation on one tensor that repeats.
#include "bindings/python/functions.h"

#include "bindings/python/arguments.h"
#include "bindings/python/errors.h"
#include "bindings/python/handles.h"
#include "bindings/python/running.h"

namespace hvd::python {
namespace {

struct Prepared {
  PyObject_HEAD  // NOLINT
      hvd_prepared* prepared;
};

constexpr Py_ssize_t kFieldCount = 11;
constexpr Py_ssize_t kSubmitArguments = 3;

hvd_prepared* prepare(Reader& reader) {
  hvd_request request;
  hvd_request_init(&request);
  Shape shape;
  request.kind = reader.int32(0);
  request.dtype = reader.int32(1);
  request.reduce_op = reader.int32(2);
  request.process_set = reader.int32(3);
  request.root_rank = reader.int32(4);
  request.wire_dtype = reader.int32(5);
  request.progress = reader.int32(6);
  reader.shape(7, shape);
  request.prescale = reader.real(8);
  request.postscale = reader.real(9);
  request.name = reader.text(10);
  if (reader.failed()) return nullptr;
  request.shape = shape.data();
  request.ndim = shape.count();
  hvd_prepared* prepared = nullptr;
  const hvd_status status = hvd_prepare(&request, 1, &prepared);
  if (status == HVD_OK) return prepared;
  raise_last(status);
  return nullptr;
}

PyObject* make(PyTypeObject* type, PyObject* tuple, PyObject* keywords) {
  if (keywords != nullptr && PyDict_Size(keywords) != 0) {
    PyErr_SetString(PyExc_TypeError, "Prepared takes no keyword arguments");
    return nullptr;
  }
  if (!has_count(PyTuple_Size(tuple), kFieldCount)) return nullptr;
  PyObject* items[kFieldCount];
  for (Py_ssize_t i = 0; i < kFieldCount; ++i) items[i] = PyTuple_GetItem(tuple, i);
  return without_exceptions([&]() -> PyObject* {
    Reader reader(items);
    hvd_prepared* const prepared = prepare(reader);
    if (prepared == nullptr) return nullptr;
    const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
    auto* const self = reinterpret_cast<Prepared*>(allocate(type, 0));
    if (self == nullptr) {
      hvd_prepared_free(prepared);
      return nullptr;
    }
    self->prepared = prepared;
    return reinterpret_cast<PyObject*>(self);
  });
}

void destroy(PyObject* self) {
  // Also after shutdown: it only frees memory.
  hvd_prepared_free(reinterpret_cast<Prepared*>(self)->prepared);
  PyTypeObject* const type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));  // instances of heap types own their type
}

// The core copies the addresses at submission, so another submission may be in flight.
hvd_status submit_with(hvd_prepared* prepared, const void* input, void* output, hvd_handle* out) {
  const hvd_status status = hvd_prepared_set_buffers(prepared, 0, input, output);
  return status == HVD_OK ? hvd_prepared_submit(prepared, out) : status;
}

PyObject* submit_prepared(PyObject* self, Arguments arguments, Py_ssize_t given) {
  if (!has_count(given, kSubmitArguments)) return nullptr;
  return without_exceptions([&]() -> PyObject* {
    Reader reader(arguments);
    const void* const input = reader.address(0);
    void* const output = reader.address(1);
    if (reader.failed()) return nullptr;
    Handles::instance().sweep();
    hvd_handle handle = 0;
    const hvd_status status =
        submit_with(reinterpret_cast<Prepared*>(self)->prepared, input, output, &handle);
    if (status != HVD_OK) return raise_last(status);
    Handles::instance().add(handle, reader.object(2));
    return PyLong_FromUnsignedLongLong(handle);
  });
}

PyObject* run_prepared(PyObject* self, Arguments arguments, Py_ssize_t given) {
  if (!has_count(given, kSubmitArguments)) return nullptr;
  return without_exceptions([&]() -> PyObject* {
    Reader reader(arguments);
    const void* const input = reader.address(0);
    void* const output = reader.address(1);
    if (reader.failed()) return nullptr;
    hvd_prepared* const prepared = reinterpret_cast<Prepared*>(self)->prepared;
    return run_to_end([&](hvd_handle* out) { return submit_with(prepared, input, output, out); },
                      reader.object(2));
  });
}

PyCFunction as_method(PyObject* (*function)(PyObject*, Arguments, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

}  // namespace

PyObject* make_prepared_type(PyObject* module) {
  static PyMethodDef methods[] = {
      {"submit", as_method(submit_prepared), METH_FASTCALL,
       "submit($self, input, output, owner, /)\n--\n\nHandle of an asynchronous submission."},
      {"run", as_method(run_prepared), METH_FASTCALL,
       "run($self, input, output, owner, /)\n--\n\nSubmits and waits in one call."},
      {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(make)},
      {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
      {Py_tp_methods, methods},
      {Py_tp_doc, const_cast<char*>("An operation on one tensor that repeats: checked and looked "
                                    "up once.")},
      {0, nullptr}};
  static PyType_Spec spec = {"horovod._core._native.Prepared", sizeof(Prepared), 0,
                             Py_TPFLAGS_DEFAULT, slots};
  return PyType_FromModuleAndSpec(module, &spec, nullptr);
}

}  // namespace hvd::python
