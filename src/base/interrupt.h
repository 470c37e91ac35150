// interrupt.h - how a wait for peers is ended early: a descriptor to poll beside what is waited
// for, and a look at what came there. The same thread waits and looks.
#pragma once

#include <functional>

#include "base/status.h"

namespace hvd {

struct Interrupt {
  int fd = -1;  // readable: look
  // Never blocks, and takes what lies in the descriptor. A failure ends the wait with that status.
  std::function<Status()> look = nullptr;
};

}  // namespace hvd
