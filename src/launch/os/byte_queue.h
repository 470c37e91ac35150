// byte_queue.h - bytes on their way into a non-blocking descriptor. One thread; never blocks.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hvd::launch {

class ByteQueue {
 public:
  void append(std::string_view bytes) { pending_ += bytes; }
  size_t size() const { return pending_.size() - written_; }
  bool is_empty() const { return size() == 0; }
  void clear();

  // Writes what can be written now; errno if that failed for good, else 0.
  int flush_some(int fd);

 private:
  std::string pending_;
  size_t written_ = 0;  // of pending_
};

}  // namespace hvd::launch
