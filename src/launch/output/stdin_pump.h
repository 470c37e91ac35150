// stdin_pump.h - hands a terminal's input to rank 0.
// A worker leads its own process group, so it may not read the terminal itself: the kernel would
// stop it. Input that is no terminal needs none of this; rank 0 inherits it. One thread; never
// blocks.
#pragma once

#include <array>
#include <cstddef>

#include "base/fd.h"
#include "base/status.h"

namespace hvd::launch {

class StdinPump {
 public:
  // `terminal` is borrowed.
  static Result<StdinPump> create(int terminal);

  int worker_end() const { return read_end_.get(); }
  void close_worker_end() { read_end_.reset(); }  // after rank 0 was started

  // What to wait for now: the terminal while the buffer is empty and we are in the foreground, the
  // pipe while it is not. -1: nothing.
  int readable_fd() const;
  int writable_fd() const;

  void read_some();
  void write_some();

 private:
  StdinPump(int terminal, UniqueFd read_end, UniqueFd write_end)
      : terminal_(terminal), read_end_(std::move(read_end)), write_end_(std::move(write_end)) {}

  int terminal_;
  UniqueFd read_end_;
  UniqueFd write_end_;
  std::array<char, 4096> buffer_{};
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace hvd::launch
