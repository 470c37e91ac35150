// Submissions of one tensor or a group, and the collectives without a tensor.
#include "bindings/python/functions.h"

#include <deque>
#include <vector>

#include "bindings/python/arguments.h"
#include "bindings/python/errors.h"
#include "bindings/python/handles.h"
#include "bindings/python/request_arguments.h"
#include "bindings/python/running.h"
#include "bindings/python/waiting.h"

namespace hvd::python {
namespace {

constexpr FieldSet kReduction =
    fields(Field::kReduceOp, Field::kWireDtype, Field::kPrescale, Field::kPostscale);
constexpr Signature kSubmit = {
    "submit", fields(Field::kKind, Field::kDtype, Field::kShape, Field::kInput, Field::kOwner),
    kReduction | fields(Field::kProcessSet, Field::kRootRank, Field::kProgress, Field::kOutput,
                        Field::kSplits, Field::kName, Field::kNotify, Field::kDevice,
                        Field::kStream)};
constexpr Signature kRun = {
    "run",
    fields(Field::kKind, Field::kDtype, Field::kShape, Field::kInput, Field::kOutput,
           Field::kOwner),
    kReduction | fields(Field::kProcessSet, Field::kRootRank, Field::kName)};
constexpr Signature kSubmitGroup = {
    "submit_group", fields(Field::kKind, Field::kTensors, Field::kOwner),
    kReduction | fields(Field::kProcessSet, Field::kProgress, Field::kNotify, Field::kDevice,
                        Field::kStream)};

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

PyObject* submit(Arguments values, Py_ssize_t positional, PyObject* names) {
  RequestArguments arguments(kSubmit);
  if (!arguments.read(values, positional, names)) return nullptr;
  return submit_requests(&arguments.request(), 1, arguments.owner());
}

PyObject* run(Arguments values, Py_ssize_t positional, PyObject* names) {
  RequestArguments arguments(kRun);
  if (!arguments.read(values, positional, names)) return nullptr;
  return run_to_end([&](hvd_handle* out) { return hvd_submit(&arguments.request(), out); },
                    arguments.owner());
}

PyObject* submit_group(Arguments values, Py_ssize_t positional, PyObject* names) {
  RequestArguments arguments(kSubmitGroup);
  if (!arguments.read(values, positional, names)) return nullptr;
  Reader& reader = arguments.reader();
  std::vector<hvd_request> requests;
  std::deque<Shape> shapes;  // requests point into it
  reader.for_each(arguments.tensors(), [&](PyObject* item) {
    constexpr Py_ssize_t kFields = 5;
    if (PyTuple_Check(item) == 0 || PyTuple_Size(item) != kFields) {
      reader.reject("tensor of a group: expected (dtype, shape, input, output, name), got %R",
                    item);
      return;
    }
    hvd_request& request = requests.emplace_back(arguments.request());
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
  return submit_requests(requests.data(), requests.size(), arguments.owner());
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
