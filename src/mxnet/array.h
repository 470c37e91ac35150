// array.h - an NDArray that an operation holds, and what the core needs to know about it.
//
// MXNet may keep what oneDNN has computed in a blocked layout, of which nobody else can make sense.
// settle() turns such an array back where it may wait, which is before a push; inside the engine
// that would wait for itself, and look() refuses the array instead.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mxnet/api.h"

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

  // Each empty, or what is wrong.
  // Before the push, on the program's thread: may block, only if the layout is blocked now.
  std::string settle() const;
  // When it is this operation's turn: never blocks.
  std::string look(View& view) const;

 private:
  Handle handle_ = nullptr;  // null: MXNet refused the copy
};

}  // namespace hvd::mxnet
