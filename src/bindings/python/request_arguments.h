// request_arguments.h - the keyword arguments of a submission as one hvd_request. Needs the GIL.
// One table of fields serves submit, run, submit_group and Prepared: a new field of hvd_request is
// one name in Field, one in kNames and one line in RequestArguments::convert.
#pragma once

#include "bindings/python/api.h"

#include <array>
#include <cstdint>

#include "bindings/python/arguments.h"
#include "bindings/python/functions.h"
#include "horovod/hvd.h"

namespace hvd::python {

// Plain numbers come first, see kNumbers.
enum class Field : uint8_t {
  kKind,
  kDtype,
  kReduceOp,
  kProcessSet,
  kRootRank,
  kWireDtype,
  kProgress,
  kDevice,
  kShape,
  kInput,
  kOutput,
  kPrescale,
  kPostscale,
  kSplits,
  kName,
  kTensors,
  kOwner,
  kNotify,
  kStream,
};
inline constexpr auto kFieldCount = static_cast<unsigned>(Field::kStream) + 1;

using FieldSet = uint32_t;

template <typename... Fields>
constexpr FieldSet fields(Fields... each) {
  return (FieldSet{0} | ... | (FieldSet{1} << static_cast<unsigned>(each)));
}

// What a function takes; fields that are left out have the values of hvd_request_init.
struct Signature {
  const char* function;
  FieldSet required;
  FieldSet optional;
};

// Makes the names of the fields, once, before any call. False with an exception set.
bool intern_field_names();

class RequestArguments {
 public:
  explicit RequestArguments(const Signature& signature) : signature_(signature) {
    hvd_request_init(&request_);
  }
  RequestArguments(const RequestArguments&) = delete;  // the request points into this object
  RequestArguments& operator=(const RequestArguments&) = delete;

  // As METH_FASTCALL | METH_KEYWORDS gives them: the values of `names` follow the positional ones.
  // False with an exception set.
  bool read(Arguments values, Py_ssize_t positional, PyObject* names);
  // As a constructor gets them.
  bool read(PyObject* positional, PyObject* keywords);

  const hvd_request& request() const { return request_; }
  // Null if the signature does not require it, and it was not given.
  PyObject* owner() { return value(Field::kOwner); }
  PyObject* tensors() { return value(Field::kTensors); }
  Reader& reader() { return reader_; }

 private:
  PyObject*& value(Field field) { return values_[static_cast<size_t>(field)]; }
  bool convert();
  bool refuse_positional(Py_ssize_t count);

  const Signature& signature_;
  Reader reader_{nullptr};
  hvd_request request_;
  Shape shape_;
  Numbers splits_;
  std::array<PyObject*, kFieldCount> values_{};  // borrowed; null: not given
};

}  // namespace hvd::python
