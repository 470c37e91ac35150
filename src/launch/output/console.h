// console.h - where the launcher prints: queues that never block it, however slow the reader is.
// One thread. A reader that has gone away (EPIPE, full disk) costs the output, never the job.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace hvd::launch {

// One destination. Text is queued whole and leaves in order, so lines stay whole.
class Console {
 public:
  // `fd` is borrowed and keeps its mode: others (the shell) share it.
  static Console for_descriptor(int fd);

  void append(std::string_view text);
  // Starts a new line if the last text ended in \r or inside a line.
  void start_line();

  // Writes what can be written without waiting.
  void flush_some();
  bool has_pending() const { return written_ < pending_.size(); }
  size_t pending_bytes() const { return pending_.size() - written_; }
  int poll_fd() const { return fd_; }  // wait here for POLLOUT while something is pending

 private:
  enum class Mode { kNonBlocking, kSocket, kSmallWrites };
  Console(int fd, UniqueFd own, Mode mode) : fd_(fd), own_(std::move(own)), mode_(mode) {}
  bool is_writable() const;
  ssize_t write_some(std::string_view text) const;

  int fd_;
  UniqueFd own_;  // our own opening of the same file, if fd_ is that
  Mode mode_;
  bool broken_ = false;
  char last_ = '\n';
  std::string pending_;
  size_t written_ = 0;  // of pending_
};

// Standard output and standard error; one queue if both lead to the same place.
class Terminal {
 public:
  // Beyond this the workers wait (their pipes are not read) until the reader has caught up.
  static constexpr size_t kHighWaterBytes = size_t{1} << 20;

  Terminal(int out_fd, int err_fd);
  Console& out() { return out_; }
  Console& err() { return err_ ? *err_ : out_; }
  bool has_pending() { return out().has_pending() || err().has_pending(); }
  void flush_some();

 private:
  Console out_;
  std::optional<Console> err_;
};

}  // namespace hvd::launch
