// What operations produced, and buffers in shared memory.
#include "bindings/python/functions.h"

#include <limits>

#include "bindings/python/arguments.h"
#include "bindings/python/capsules.h"
#include "bindings/python/errors.h"
#include "bindings/python/life_cycle.h"
#include "bindings/python/waiting.h"

namespace hvd::python {
namespace {

hvd_status get_output(hvd_handle handle, size_t index, hvd_output& out) {
  out = hvd_output{};
  out.struct_size = sizeof out;
  return hvd_get_output(handle, index, &out);
}

void free_output(void* data, uint64_t) { hvd_output_free(data); }

void free_buffer(void* data, uint64_t life) {
  // What outlives its job stays until the process ends, see hvd_shutdown.
  if (life == current_life()) (void)hvd_buffer_free(data);
}

// Bytes of a tensor; false: negative or too many.
bool bytes_of(const Shape& shape, size_t item_bytes, size_t& out) {
  out = item_bytes;
  for (int32_t i = 0; i < shape.count(); ++i) {
    const int64_t dimension = shape.data()[i];
    if (dimension < 0 || __builtin_mul_overflow(out, static_cast<size_t>(dimension), &out))
      return false;
  }
  return out <= static_cast<size_t>(std::numeric_limits<int64_t>::max());
}

}  // namespace

PyObject* output_shape(Arguments arguments) {
  Reader reader(arguments);
  const hvd_handle handle = reader.handle(0);
  const size_t index = reader.index(1);
  if (reader.failed()) return nullptr;
  hvd_output output;
  const hvd_status status = get_output(handle, index, output);
  if (status != HVD_OK) return raise_last(status);
  return to_tuple(output.shape, static_cast<size_t>(output.ndim));
}

PyObject* received_splits(Arguments arguments) {
  Reader reader(arguments);
  const hvd_handle handle = reader.handle(0);
  if (reader.failed()) return nullptr;
  hvd_output output;
  const hvd_status status = get_output(handle, 0, output);
  if (status != HVD_OK) return raise_last(status);
  return to_tuple(output.received_splits, static_cast<size_t>(output.received_splits_count));
}

PyObject* take_output(Arguments arguments) {
  Reader reader(arguments);
  const hvd_handle handle = reader.handle(0);
  const size_t index = reader.index(1);
  if (reader.failed()) return nullptr;
  hvd_output output;
  hvd_status status = get_output(handle, index, output);
  if (status != HVD_OK) return raise_last(status);
  Memory memory{nullptr, free_output, 0};
  if (output.bytes > 0) {  // nothing is allocated for nothing
    status = hvd_output_take(handle, index, &memory.data);
    if (status != HVD_OK) return raise_last(status);
  }
  return make_capsule(memory, output.dtype, {output.shape, static_cast<size_t>(output.ndim)},
                      output.device);
}

PyObject* nccl_version(Arguments) { return PyLong_FromLong(hvd_nccl_version()); }

PyObject* device_count(Arguments) { return PyLong_FromLong(hvd_device_count()); }

PyObject* order(Arguments arguments) {
  Reader reader(arguments);
  const hvd_handle handle = reader.handle(0);
  void* const stream = reader.address(1);
  if (reader.failed()) return nullptr;
  const hvd_status status = hvd_order(handle, stream);
  if (status != HVD_OK) return raise_last(status);
  Py_RETURN_NONE;
}

PyObject* buffer_alloc(Arguments arguments) {
  Reader reader(arguments);
  Shape shape;
  reader.shape(0, shape);
  const int32_t dtype = reader.int32(1);
  if (reader.failed()) return nullptr;
  const DlDataType* const type = dl_type(dtype);
  if (type == nullptr)
    return PyErr_Format(PyExc_ValueError, "buffer: dtype %d is not valid", dtype);
  size_t bytes = 0;
  if (!bytes_of(shape, type->bits / 8u, bytes)) {
    return PyErr_Format(PyExc_ValueError, "buffer: no tensor can have the shape %R",
                        reader.object(0));
  }
  Memory memory{nullptr, free_buffer, current_life()};
  if (bytes > 0) {
    // Pages come now: it may take a while.
    const hvd_status status = without_gil([&] { return hvd_buffer_alloc(bytes, &memory.data); });
    if (status != HVD_OK) return raise_last(status);
  }
  return make_capsule(memory, dtype, {shape.data(), static_cast<size_t>(shape.count())});
}

PyObject* buffer_contains(Arguments arguments) {
  Reader reader(arguments);
  const void* const address = reader.address(0);
  const size_t bytes = reader.index(1);
  if (reader.failed()) return nullptr;
  return PyBool_FromLong(hvd_buffer_contains(address, bytes));
}

}  // namespace hvd::python
