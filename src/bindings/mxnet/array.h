// array.h - an NDArray that an operation holds, and what the core needs to know about it.
//
// Where the memory is may be asked only when the operation has the array: before, the engine may be
// allocating it, and MXNet would allocate it twice. MXNet may also keep what oneDNN has computed in
// a blocked layout, of which nobody else can make sense; turning it back inside the engine would
// wait for itself, so look() refuses such an array.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bindings/mxnet/api.h"

namespace hvd::mxnet {

struct View {
  void* data = nullptr;
  int32_t dtype = -1;  // hvd_dtype
  std::vector<int64_t> shape;
};

// A second handle of the same memory: the program may free its own before the operation has run.
class Array {
 public:
  explicit Array(Handle handle);
  ~Array();
  Array(Array&& other) noexcept;
  Array& operator=(Array&&) = delete;

  Handle handle() const { return handle_; }

  // When the operation has the array: never blocks. Empty, or what is wrong.
  std::string look(View& view) const;

 private:
  Handle handle_ = nullptr;  // null: MXNet refused
};

}  // namespace hvd::mxnet
