// What the core tells about itself.
#include "bindings/python/functions.h"

#include <dlfcn.h>

#include <algorithm>
#include <string>

#include "bindings/python/arguments.h"
#include "bindings/python/errors.h"
#include "bindings/python/waiting.h"

namespace hvd::python {
namespace {

struct Counter {
  const char* name;
  uint64_t hvd_stats::*value;
};

constexpr Counter kCounters[] = {
    {"operations", &hvd_stats::operations},
    {"bytes", &hvd_stats::bytes},
    {"failed_operations", &hvd_stats::failed_operations},
    {"cache_hits", &hvd_stats::cache_hits},
    {"cache_misses", &hvd_stats::cache_misses},
    {"cache_evictions", &hvd_stats::cache_evictions},
    {"cache_entries", &hvd_stats::cache_entries},
    {"agreed_in_lockstep", &hvd_stats::agreed_in_lockstep},
    {"agreed_by_log", &hvd_stats::agreed_by_log},
    {"small_operations", &hvd_stats::small_operations},
    {"streamed_operations", &hvd_stats::streamed_operations},
    {"shared_operations", &hvd_stats::shared_operations},
    {"parks", &hvd_stats::parks},
    {"wakes_sent", &hvd_stats::wakes_sent},
    {"late_rings", &hvd_stats::late_rings},
    {"rescued_wakes", &hvd_stats::rescued_wakes},
    {"background_runs", &hvd_stats::background_runs},
    {"stall_warnings", &hvd_stats::stall_warnings},
};

PyObject* path_of(const void* symbol) {
  Dl_info info{};
  if (dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "library path: the loader does not know libhorovod.so");
    return nullptr;
  }
  return PyUnicode_DecodeFSDefault(info.dli_fname);
}

}  // namespace

PyObject* version(Arguments) { return PyUnicode_FromString(hvd_version()); }

PyObject* library_path(Arguments) { return path_of(reinterpret_cast<const void*>(&hvd_version)); }

PyObject* capabilities(Arguments) {
  hvd_capabilities c{};
  c.struct_size = sizeof c;
  const hvd_status status = hvd_get_capabilities(&c);
  if (status != HVD_OK) return raise_last(status);
  return Py_BuildValue("{s:I,s:I,s:I,s:I,s:i,s:s,s:s}", "abi_version", c.abi_version, "dtypes",
                       c.dtypes, "reduce_ops", c.reduce_ops, "kinds", c.kinds, "max_ranks_per_host",
                       c.max_ranks_per_host, "simd", c.simd, "engines", c.engines);
}

PyObject* timeline_start(Arguments arguments) {
  Reader reader(arguments);
  const char* const path = reader.text(0);
  const bool mark_cycles = reader.flag(1);
  if (reader.failed()) return nullptr;
  return none_or_raise(without_gil([&] { return hvd_timeline_start(path, mark_cycles ? 1 : 0); }));
}

PyObject* timeline_stop(Arguments) {
  return none_or_raise(without_gil([] { return hvd_timeline_stop(); }));
}

PyObject* stats(Arguments) {
  hvd_stats values{};
  values.struct_size = sizeof values;
  const hvd_status status = hvd_get_stats(&values);
  if (status != HVD_OK) return raise_last(status);
  PyObject* const all = PyDict_New();
  if (all == nullptr) return nullptr;
  for (const Counter& counter : kCounters) {
    PyObject* const value = PyLong_FromUnsignedLongLong(values.*counter.value);
    const bool stored = value != nullptr && PyDict_SetItemString(all, counter.name, value) == 0;
    Py_XDECREF(value);
    if (!stored) {
      Py_DECREF(all);
      return nullptr;
    }
  }
  return all;
}

PyObject* recent_operations(Arguments) {
  std::string text(hvd_recent_operations(nullptr, 0) + 1, '\0');
  // Operations go on meanwhile: what does not fit any more is left out.
  const size_t length = hvd_recent_operations(text.data(), text.size());
  text.resize(std::min(length, text.size() - 1));
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
}

PyObject* set_stall_signal(Arguments arguments) {
  Reader reader(arguments);
  const int32_t number = reader.int32(0);
  if (reader.failed()) return nullptr;
  return none_or_raise(hvd_set_stall_signal(number));
}

}  // namespace hvd::python
