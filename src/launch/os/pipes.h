// pipes.h - a pipe of which we keep one end, non-blocking. Any thread.
#pragma once

#include "base/fd.h"
#include "base/status.h"

namespace hvd::launch {

struct Pipe {
  UniqueFd ours;    // non-blocking
  UniqueFd theirs;  // blocking: programs expect nothing else
};

Result<Pipe> pipe_to_read();   // ours is the read end
Result<Pipe> pipe_to_write();  // ours is the write end

}  // namespace hvd::launch
