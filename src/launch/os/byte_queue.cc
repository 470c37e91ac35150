#include "launch/os/byte_queue.h"

#include <unistd.h>

#include <cerrno>

namespace hvd::launch {

void ByteQueue::clear() {
  pending_.clear();
  written_ = 0;
}

int ByteQueue::flush_some(int fd) {
  while (!is_empty()) {
    const ssize_t count = ::write(fd, pending_.data() + written_, size());
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return errno;
      break;
    }
    written_ += static_cast<size_t>(count);
  }
  // Moves the rest to the front only when that is less work than what has been written.
  if (written_ > pending_.size() / 2) {
    pending_.erase(0, written_);
    written_ = 0;
  }
  return 0;
}

}  // namespace hvd::launch
