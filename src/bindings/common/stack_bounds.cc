#include "bindings/common/stack_bounds.h"

#include <pthread.h>

#include <cstddef>
#include <cstdint>

namespace hvd::bindings {
namespace {

struct StackBounds {
  uintptr_t low = 0, high = 0;
};

StackBounds bounds_of_this_thread() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void* low = nullptr;
  size_t bytes = 0;
  pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  const auto begin = reinterpret_cast<uintptr_t>(low);
  return {begin, begin + bytes};
}

}  // namespace

bool is_on_my_stack(const void* address) {
  thread_local const StackBounds bounds = bounds_of_this_thread();
  const auto place = reinterpret_cast<uintptr_t>(address);
  return place >= bounds.low && place < bounds.high;
}

}  // namespace hvd::bindings
