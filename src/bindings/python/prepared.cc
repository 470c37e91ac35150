// The type Prepared: an operation on one tensor that repeats.
#include "bindings/python/functions.h"

#include "bindings/python/arguments.h"
#include "bindings/python/errors.h"
#include "bindings/python/handles.h"
#include "bindings/python/request_arguments.h"
#include "bindings/python/running.h"

namespace hvd::python {
namespace {

struct Prepared {
  PyObject_HEAD  // NOLINT
      hvd_prepared* prepared;
};

constexpr Py_ssize_t kSubmitArguments = 3;  // and the stream of a device
constexpr Signature kPrepare = {
    "Prepared", fields(Field::kKind, Field::kDtype, Field::kShape),
    fields(Field::kReduceOp, Field::kProcessSet, Field::kRootRank, Field::kWireDtype,
           Field::kProgress, Field::kPrescale, Field::kPostscale, Field::kName, Field::kDevice)};

hvd_prepared* prepare(const hvd_request& request) {
  hvd_prepared* prepared = nullptr;
  const hvd_status status = hvd_prepare(&request, 1, &prepared);
  if (status == HVD_OK) return prepared;
  raise_last(status);
  return nullptr;
}

PyObject* make(PyTypeObject* type, PyObject* positional, PyObject* keywords) {
  return without_exceptions([&]() -> PyObject* {
    RequestArguments arguments(kPrepare);
    if (!arguments.read(positional, keywords)) return nullptr;
    hvd_prepared* const prepared = prepare(arguments.request());
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
  const bool has_stream = given == kSubmitArguments + 1;
  if (!has_stream && !has_count(given, kSubmitArguments)) return nullptr;
  return without_exceptions([&]() -> PyObject* {
    Reader reader(arguments);
    const void* const input = reader.address(0);
    void* const output = reader.address(1);
    void* const stream = has_stream ? reader.address(3) : nullptr;
    if (reader.failed()) return nullptr;
    Handles::instance().sweep();
    if (has_stream)
      (void)hvd_prepared_set_stream(reinterpret_cast<Prepared*>(self)->prepared, stream);
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
       "submit($self, input, output, owner, stream=0, /)\n--\n\nHandle of an asynchronous "
       "submission."},
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
