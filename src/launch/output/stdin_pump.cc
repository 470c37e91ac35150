#include "launch/output/stdin_pump.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace hvd::launch {

Result<StdinPump> StdinPump::create(int terminal) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return errno_status("cannot make a pipe for rank 0's input", errno);
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  // Only our end: a program that does not expect it cannot use a non-blocking standard input.
  if (::fcntl(write_end.get(), F_SETFL, O_NONBLOCK) != 0) {
    return errno_status("cannot prepare the pipe for rank 0's input", errno);
  }
  return StdinPump(terminal, std::move(read_end), std::move(write_end));
}

int StdinPump::readable_fd() const {
  if (!write_end_.valid() || begin_ != end_) return -1;
  return ::tcgetpgrp(terminal_) == ::getpgrp() ? terminal_ : -1;
}

int StdinPump::writable_fd() const { return begin_ != end_ ? write_end_.get() : -1; }

void StdinPump::read_some() {
  const ssize_t count = ::read(terminal_, buffer_.data(), buffer_.size());
  if (count > 0) {
    begin_ = 0;
    end_ = static_cast<size_t>(count);
    write_some();
  } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
    write_end_.reset();  // Ctrl-D, or the terminal has gone
  }
}

void StdinPump::write_some() {
  while (begin_ != end_) {
    const ssize_t count = ::write(write_end_.get(), buffer_.data() + begin_, end_ - begin_);
    if (count >= 0) {
      begin_ += static_cast<size_t>(count);
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      begin_ = end_ = 0;
      write_end_.reset();  // rank 0 reads no more
    }
  }
}

}  // namespace hvd::launch
