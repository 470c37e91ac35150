// completions.h - handles submitted with notify, in the order in which they completed.
// Thread: pushed by whatever thread steps the engine, which never takes the GIL; popped by Python
// threads that gave the GIL back.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>

#include "horovod/hvd.h"

namespace hvd::python {

class Completions {
 public:
  // Never destroyed: the core may complete operations while the process ends.
  static Completions& instance();

  void open();
  // Wakes whoever waits. What is in the queue can still be taken.
  void close();
  void push(hvd_handle handle);
  // OK, TIMED_OUT, or SHUT_DOWN when closed and empty. May block.
  hvd_status pop(hvd_handle& out, int64_t timeout_ns);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<hvd_handle> done_;  // guarded by mutex_
  bool is_open_ = false;         // guarded by mutex_
};

// hvd_callback of requests with notify.
void report_completion(void* context, hvd_handle handle, hvd_status status, const char* message);

}  // namespace hvd::python
