#include "bindings/python/request_arguments.h"

#include <array>
#include <optional>

#include "bindings/python/completions.h"

namespace hvd::python {
namespace {

// In the order of Field.
constexpr std::array kNames = {
    "kind",   "dtype",   "reduce_op", "process_set", "root_rank", "wire_dtype", "progress",
    "device", "shape",   "input",     "output",      "prescale",  "postscale",  "splits",
    "name",   "tensors", "owner",     "notify",      "stream",
};
static_assert(kNames.size() == kFieldCount);

// The fields that are plain numbers; they come first.
constexpr std::array<int32_t hvd_request::*, static_cast<size_t>(Field::kShape)> kNumbers = {
    &hvd_request::kind,        &hvd_request::dtype,     &hvd_request::reduce_op,
    &hvd_request::process_set, &hvd_request::root_rank, &hvd_request::wire_dtype,
    &hvd_request::progress,    &hvd_request::device,
};

// Names in Python code are interned, so that the same name is the same object.
std::array<PyObject*, kFieldCount> interned_names;

std::optional<Field> find(PyObject* name) {
  for (unsigned i = 0; i < kFieldCount; ++i) {
    if (interned_names[i] == name) return static_cast<Field>(i);
  }
  for (unsigned i = 0; i < kFieldCount; ++i) {
    if (PyUnicode_CompareWithASCIIString(name, kNames[i]) == 0) return static_cast<Field>(i);
  }
  return std::nullopt;
}

// Both set an exception if they return false.
bool is_taken(const Signature& signature, PyObject* name, std::optional<Field> field) {
  const FieldSet bit = field ? fields(*field) : 0;
  if ((bit & (signature.required | signature.optional)) != 0) return true;
  PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument %R", signature.function,
               name);
  return false;
}

bool is_complete(const Signature& signature, FieldSet given) {
  const FieldSet missing = signature.required & ~given;
  for (unsigned i = 0; missing != 0 && i < kFieldCount; ++i) {
    if ((missing & (FieldSet{1} << i)) == 0) continue;
    PyErr_Format(PyExc_TypeError, "%s() missing required keyword argument: '%s'",
                 signature.function, kNames[i]);
    return false;
  }
  return true;
}

// Which field each keyword of a place in the program means. The interpreter hands over the same
// tuple of names whenever that place is reached, so names are looked at once: without this,
// keywords would cost a twentieth of a small allreduce.
struct Plan {
  const Signature* signature = nullptr;
  PyObject* names = nullptr;  // kept alive, so that no other tuple can have this address
  size_t count = 0;
  std::array<Field, kFieldCount> fields{};
};

// Guarded by the GIL, never destroyed. A new place takes the entry of another one.
Plan& plan_of(PyObject* names) {
  constexpr size_t kPlans = 64;
  constexpr unsigned kAlignmentBits = 4;
  static std::array<Plan, kPlans> plans;
  return plans[(reinterpret_cast<uintptr_t>(names) >> kAlignmentBits) % kPlans];
}

// Null with an exception set if the names do not fit.
const Plan* find_plan(const Signature& signature, PyObject* names) {
  Plan& plan = plan_of(names);
  if (plan.names == names && plan.signature == &signature) return &plan;
  Plan made{
      .signature = &signature, .names = names, .count = static_cast<size_t>(PyTuple_Size(names))};
  if (made.count > kFieldCount) {
    PyErr_Format(PyExc_TypeError, "%s() got %zu keyword arguments, there are only %u",
                 signature.function, made.count, kFieldCount);
    return nullptr;
  }
  FieldSet given = 0;
  for (size_t i = 0; i < made.count; ++i) {
    PyObject* const name = PyTuple_GetItem(names, static_cast<Py_ssize_t>(i));
    const std::optional<Field> field = find(name);
    if (!is_taken(signature, name, field)) return nullptr;
    made.fields[i] = *field;
    given |= fields(*field);
  }
  if (!is_complete(signature, given)) return nullptr;
  Py_INCREF(names);
  Py_XDECREF(plan.names);
  plan = made;
  return &plan;
}

}  // namespace

bool intern_field_names() {
  for (unsigned i = 0; i < kFieldCount; ++i) {
    interned_names[i] = PyUnicode_InternFromString(kNames[i]);
    if (interned_names[i] == nullptr) return false;
  }
  return true;
}

bool RequestArguments::read(Arguments values, Py_ssize_t positional, PyObject* names) {
  if (positional != 0) return refuse_positional(positional);
  if (names == nullptr) return is_complete(signature_, 0);
  const Plan* const plan = find_plan(signature_, names);
  if (plan == nullptr) return false;
  for (size_t i = 0; i < plan->count; ++i) value(plan->fields[i]) = values[i];
  return convert();
}

bool RequestArguments::read(PyObject* positional, PyObject* keywords) {
  if (PyTuple_Size(positional) != 0) return refuse_positional(PyTuple_Size(positional));
  PyObject* name = nullptr;
  PyObject* object = nullptr;
  Py_ssize_t place = 0;
  FieldSet given = 0;
  while (keywords != nullptr && PyDict_Next(keywords, &place, &name, &object) != 0) {
    const std::optional<Field> field = find(name);
    if (!is_taken(signature_, name, field)) return false;
    given |= fields(*field);
    value(*field) = object;
  }
  return is_complete(signature_, given) && convert();
}

bool RequestArguments::convert() {
  for (size_t i = 0; i < kNumbers.size(); ++i) {
    if (values_[i] != nullptr) request_.*kNumbers[i] = reader_.to_int32(values_[i]);
  }
  if (PyObject* const shape = value(Field::kShape)) reader_.to_list(shape, shape_);
  request_.shape = shape_.data();
  request_.ndim = shape_.count();
  if (PyObject* const input = value(Field::kInput)) request_.input = reader_.to_address(input);
  if (PyObject* const output = value(Field::kOutput)) request_.output = reader_.to_address(output);
  if (PyObject* const stream = value(Field::kStream)) request_.stream = reader_.to_address(stream);
  if (PyObject* const factor = value(Field::kPrescale)) request_.prescale = reader_.to_real(factor);
  if (PyObject* const factor = value(Field::kPostscale))
    request_.postscale = reader_.to_real(factor);
  if (PyObject* const name = value(Field::kName)) request_.name = reader_.to_text(name);
  if (PyObject* const splits = value(Field::kSplits); splits != nullptr && splits != Py_None) {
    reader_.to_list(splits, splits_);
    request_.splits = splits_.data();
    request_.splits_count = splits_.count();
  }
  if (PyObject* const notify = value(Field::kNotify);
      notify != nullptr && reader_.to_flag(notify)) {
    request_.on_complete = report_completion;
  }
  return !reader_.failed();
}

bool RequestArguments::refuse_positional(Py_ssize_t count) {
  PyErr_Format(PyExc_TypeError, "%s() takes keyword arguments only, got %zd positional",
               signature_.function, count);
  return false;
}

}  // namespace hvd::python
