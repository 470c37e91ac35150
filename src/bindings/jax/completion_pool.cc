#include "bindings/jax/completion_pool.h"

#include <pthread.h>

#include "bindings/jax/call.h"

namespace hvd::jax {

CompletionPool& CompletionPool::instance() {
  static CompletionPool* const the_pool = new CompletionPool;
  return *the_pool;
}

void CompletionPool::post(Call& call) {
  {
    const std::lock_guard lock(mutex_);
    ready_.push_back(&call);
    if (ready_.size() > idle_count_) threads_.emplace_back([this] { run(); });
  }
  posted_.notify_one();
}

void CompletionPool::run() {
  pthread_setname_np(pthread_self(), "hvd-jax");
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_count_;
    posted_.wait(lock, [this] { return !ready_.empty(); });
    --idle_count_;
    Call* const call = ready_.front();
    ready_.pop_front();
    lock.unlock();
    call->complete();
    lock.lock();
  }
}

}  // namespace hvd::jax
