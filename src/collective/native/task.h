// task.h - a work in execution: a state machine that never blocks, so that several process sets can
// advance side by side, a caller's deadline holds in the middle of an operation, and the death of a
// peer is noticed anywhere. Needs the engine role.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "collective/native/link.h"
#include "collective/native/work.h"

namespace hvd::native {

enum class Progress {
  kDone,      // the work is complete on this rank
  kAdvanced,  // call again
  kBlocked,   // Link::want() says for what
};

class Task {
 public:
  virtual ~Task() = default;
  virtual Progress advance() = 0;
};

std::unique_ptr<Task> make_staged_reduce(Link& link, Work& work);  // any number of ranks
std::unique_ptr<Task> make_shared_reduce(Link& link,
                                         Work& work);  // buffers of all ranks lie in shared memory
std::unique_ptr<Task> make_exchange(Link& link, Work& work);
std::unique_ptr<Task> make_adasum(Link& link, Work& work);
std::unique_ptr<Task> make_fence(Link& link, Work& work);

// Where the share of `member` begins when `count` elements are dealt out in whole cache lines.
inline uint64_t share_begin(uint64_t count, size_t element_bytes, int members, int member) {
  const uint64_t line = kCacheLine / element_bytes;
  const auto parts = static_cast<uint64_t>(members);
  const uint64_t each = align_up((count + parts - 1) / parts, line);
  return std::min(count, each * static_cast<uint64_t>(member));
}

}  // namespace hvd::native
