// in_callback.h - whether a callback of the user runs in this thread: it has the role there, so it
// must not wait for it.
#pragma once

#include <string>

#include "base/status.h"

namespace hvd::engine {

class InCallback {
 public:
  InCallback() { ++depth_; }
  ~InCallback() { --depth_; }
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
  static Status check(const char* what) {
    if (depth_ == 0) return Status::ok();
    return precondition_error(std::string(what) + ": not in a callback, which must not wait");
  }

 private:
  static inline thread_local int depth_ = 0;
};

}  // namespace hvd::engine
