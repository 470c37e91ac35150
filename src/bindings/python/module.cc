// The module horovod._core._native. Its stub, python/horovod/_core/_native.pyi, is its
// documentation.
#include "bindings/python/functions.h"
#include "bindings/python/request_arguments.h"

namespace hvd::python {
namespace {

template <Function function, Py_ssize_t count>
PyMethodDef method(const char* name) {
  auto* const call = &entry<function, count>;
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call)), METH_FASTCALL,
          nullptr};
}

template <Function function, Py_ssize_t least, Py_ssize_t most>
PyMethodDef method(const char* name) {
  auto* const call = &entry<function, least, most>;
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call)), METH_FASTCALL,
          nullptr};
}

template <KeywordFunction function>
PyMethodDef keyword_method(const char* name) {
  auto* const call = &keyword_entry<function>;
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call)),
          METH_FASTCALL | METH_KEYWORDS, nullptr};
}

PyMethodDef methods[] = {
    method<set_error_class, 1>("set_error_class"),
    method<version, 0>("version"),
    method<nccl_version, 0>("nccl_version"),
    method<device_count, 0>("device_count"),
    method<library_path, 0>("library_path"),
    method<capabilities, 0>("capabilities"),
    method<status_names, 0>("status_names"),
    method<init, 5, 6>("init"),
    method<init_mpi, 3>("init_mpi"),
    method<shutdown, 0>("shutdown"),
    method<is_initialized, 0>("is_initialized"),
    method<rank, 0>("rank"),
    method<size, 0>("size"),
    method<local_rank, 0>("local_rank"),
    method<local_size, 0>("local_size"),
    method<cross_rank, 0>("cross_rank"),
    method<cross_size, 0>("cross_size"),
    method<is_homogeneous, 0>("is_homogeneous"),
    method<mpi_threads, 0>("mpi_threads"),
    method<elastic_is_active, 0>("elastic_is_active"),
    method<elastic_epoch, 0>("elastic_epoch"),
    method<elastic_look, 0>("elastic_look"),
    method<elastic_report, 2>("elastic_report"),
    keyword_method<submit>("submit"),
    keyword_method<run>("run"),
    keyword_method<submit_group>("submit_group"),
    method<poll, 1>("poll"),
    method<wait, 2>("wait"),
    method<wait_many, 2>("wait_many"),
    method<order, 2>("order"),
    method<release, 1>("release"),
    method<next_completed, 1>("next_completed"),
    method<output_shape, 2>("output_shape"),
    method<received_splits, 1>("received_splits"),
    method<take_output, 2>("take_output"),
    method<barrier, 2>("barrier"),
    method<join, 1>("join"),
    method<buffer_alloc, 2>("buffer_alloc"),
    method<buffer_contains, 2>("buffer_contains"),
    method<process_set_add, 1>("process_set_add"),
    method<process_set_remove, 1>("process_set_remove"),
    method<process_set_rank, 1>("process_set_rank"),
    method<process_set_size, 1>("process_set_size"),
    method<process_set_included, 1>("process_set_included"),
    method<process_set_ids, 0>("process_set_ids"),
    method<process_set_ranks, 1>("process_set_ranks"),
    method<process_set_meet, 3>("process_set_meet"),
    method<process_set_leave, 1>("process_set_leave"),
    method<timeline_start, 2>("timeline_start"),
    method<timeline_stop, 0>("timeline_stop"),
    method<stats, 0>("stats"),
    method<recent_operations, 0>("recent_operations"),
    method<set_stall_signal, 1>("set_stall_signal"),
    method<seal, 3>("seal"),
    method<unseal, 3>("unseal"),
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "horovod._core._native",
                          "The C interface of the core, one call each.",
                          -1,  // one engine per process, so no copies for sub-interpreters
                          methods,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace hvd::python

PyMODINIT_FUNC PyInit__native() {  // NOLINT: the name that the interpreter looks for
  if (!hvd::python::intern_field_names()) return nullptr;
  PyObject* const module = PyModule_Create(&hvd::python::definition);
  if (module == nullptr) return nullptr;
  PyObject* const type = hvd::python::make_prepared_type(module);
  if (type == nullptr || PyModule_AddObjectRef(module, "Prepared", type) != 0) {
    Py_XDECREF(type);
    Py_DECREF(module);
    return nullptr;
  }
  Py_DECREF(type);
  return module;
}
