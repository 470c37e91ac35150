// completion_pool.h - the threads on which XLA programs go on after an operation.
//
// Completing a future runs the rest of its program right there, and that may wait for other
// operations. So the pool has always a thread more than are busy: it grows with the number of
// programs that wait at once, and never shrinks.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace hvd::jax {

class Call;

// Thread: any.
class CompletionPool {
 public:
  // Never destroyed: operations may end while the process does.
  static CompletionPool& instance();

  // Some thread calls complete() of the call. Never blocks on calls before it.
  void post(Call& call);

 private:
  CompletionPool() = default;
  void run();

  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<Call*> ready_;
  size_t idle_count_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace hvd::jax
