// interrupt.h - how a wait for peers is ended early: a descriptor to poll beside what is waited
// for, and a look at what came there; and who hears which peers were waited for in vain. The same
// thread waits, looks and tells.
#pragma once

#include <cstdint>
#include <functional>

#include "base/status.h"

namespace hvd {

struct Interrupt {
  int fd = -1;  // readable: look
  // Never blocks, and takes what lies in the descriptor. A failure ends the wait with that status.
  std::function<Status()> look = nullptr;
  // This rank could not reach that one, or kStorePeer: the place where all ranks find each other.
  // Not for peers of a wait that `look` has ended.
  std::function<void(int32_t)> miss = nullptr;
};

inline constexpr int32_t kStorePeer = -1;

}  // namespace hvd
