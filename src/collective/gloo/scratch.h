// scratch.h - memory of a group's calls for elements that have another form or place than the
// user's. Grows to the largest call. The group's worker alone uses it.
#pragma once

#include <cstddef>
#include <memory>

namespace hvd::collective::gloo {

class Scratch {
 public:
  // Contents are lost when it grows.
  std::byte* get(size_t bytes) {
    if (bytes > bytes_) {
      memory_.reset();  // before the new one: both may be large
      memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      bytes_ = bytes;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  size_t bytes_ = 0;
};

}  // namespace hvd::collective::gloo
