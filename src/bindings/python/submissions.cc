// Submissions of one tensor or a group, and the collectives without a tensor.
#include "bindings/python/functions.h"

#include <deque>
#include <vector>

#include "bindings/python/arguments.h"
#include "bindings/python/completions.h"
#include "bindings/python/errors.h"
#include "bindings/python/handles.h"
#include "bindings/python/running.h"
#include "bindings/python/waiting.h"

namespace hvd::python {
namespace {

hvd_request empty_request() {
  hvd_request request;
  hvd_request_init(&request);
  return request;
}

// Asynchronous and short, so the GIL stays.
PyObject* submit_requests(const hvd_request* requests, size_t count, PyObject* owner) {
  Handles& handles = Handles::instance();
  handles.sweep();
  hvd_handle handle = 0;
  const hvd_status status = hvd_submit_group(requests, count, &handle);
  if (status != HVD_OK) return raise_last(status);
  handles.add(handle, owner);
  return PyLong_FromUnsignedLongLong(handle);
}

}  // namespace

PyObject* submit(Arguments arguments) {
  Reader reader(arguments);
  hvd_request request = empty_request();
  Shape shape;
  Numbers splits;
  request.kind = reader.int32(0);
  request.dtype = reader.int32(1);
  request.reduce_op = reader.int32(2);
  request.process_set = reader.int32(3);
  request.root_rank = reader.int32(4);
  request.wire_dtype = reader.int32(5);
  request.progress = reader.int32(6);
  reader.shape(7, shape);
  request.input = reader.address(8);
  request.output = reader.address(9);
  request.prescale = reader.real(10);
  request.postscale = reader.real(11);
  if (!reader.is_none(12)) {
    reader.numbers(12, splits);
    request.splits = splits.data();
    request.splits_count = splits.count();
  }
  request.name = reader.text(13);
  if (reader.flag(15)) request.on_complete = report_completion;
  if (reader.failed()) return nullptr;
  request.shape = shape.data();
  request.ndim = shape.count();
  return submit_requests(&request, 1, reader.object(14));
}

PyObject* run(Arguments arguments) {
  Reader reader(arguments);
  hvd_request request = empty_request();
  Shape shape;
  request.kind = reader.int32(0);
  request.dtype = reader.int32(1);
  request.reduce_op = reader.int32(2);
  request.process_set = reader.int32(3);
  request.root_rank = reader.int32(4);
  request.wire_dtype = reader.int32(5);
  reader.shape(6, shape);
  request.input = reader.address(7);
  request.output = reader.address(8);
  request.prescale = reader.real(9);
  request.postscale = reader.real(10);
  request.name = reader.text(11);
  if (reader.failed()) return nullptr;
  request.shape = shape.data();
  request.ndim = shape.count();
  return run_to_end([&](hvd_handle* out) { return hvd_submit(&request, out); }, reader.object(12));
}

PyObject* submit_group(Arguments arguments) {
  Reader reader(arguments);
  hvd_request common = empty_request();
  common.kind = reader.int32(0);
  common.reduce_op = reader.int32(1);
  common.process_set = reader.int32(2);
  common.wire_dtype = reader.int32(3);
  common.progress = reader.int32(4);
  common.prescale = reader.real(5);
  common.postscale = reader.real(6);
  if (reader.flag(9)) common.on_complete = report_completion;

  std::vector<hvd_request> requests;
  std::deque<Shape> shapes;  // requests point into it
  reader.for_each(reader.object(7), [&](PyObject* item) {
    constexpr Py_ssize_t kFields = 5;
    if (PyTuple_Check(item) == 0 || PyTuple_Size(item) != kFields) {
      reader.reject("tensor of a group: expected (dtype, shape, input, output, name), got %R",
                    item);
      return;
    }
    hvd_request& request = requests.emplace_back(common);
    Shape& shape = shapes.emplace_back();
    request.dtype = reader.to_int32(PyTuple_GetItem(item, 0));
    reader.to_list(PyTuple_GetItem(item, 1), shape);
    request.input = reader.to_address(PyTuple_GetItem(item, 2));
    request.output = reader.to_address(PyTuple_GetItem(item, 3));
    request.name = reader.to_text(PyTuple_GetItem(item, 4));
    request.shape = shape.data();
    request.ndim = shape.count();
  });
  if (reader.failed()) return nullptr;
  return submit_requests(requests.data(), requests.size(), reader.object(8));
}

PyObject* barrier(Arguments arguments) {
  Reader reader(arguments);
  hvd_request request = empty_request();
  request.kind = HVD_BARRIER;
  request.process_set = reader.int32(0);
  const int64_t timeout_ns = reader.timeout_ns(1);
  if (reader.failed()) return nullptr;
  return run_to_end([&](hvd_handle* out) { return hvd_submit(&request, out); }, Py_None,
                    timeout_ns);
}

PyObject* join(Arguments arguments) {
  Reader reader(arguments);
  hvd_request request = empty_request();
  request.kind = HVD_JOIN;
  const int64_t timeout_ns = reader.timeout_ns(0);
  if (reader.failed()) return nullptr;
  hvd_output output{};
  output.struct_size = sizeof output;
  PyObject* const done =
      run_to_end([&](hvd_handle* out) { return hvd_submit(&request, out); }, Py_None, timeout_ns,
                 [&](hvd_handle handle) { return hvd_get_output(handle, 0, &output); });
  if (done == nullptr) return nullptr;
  Py_DECREF(done);
  return PyLong_FromLong(output.last_joined_rank);
}

}  // namespace hvd::python
