// thread_annotations.h - Clang thread-safety attributes, and an annotated mutex.
// A thread role is a capability: a function marked HVD_REQUIRES(role) compiles only where it is
// held.
#pragma once

#include <mutex>

#if defined(__clang__)
#define HVD_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define HVD_THREAD_ATTRIBUTE(x)
#endif
#define HVD_CAPABILITY(name) HVD_THREAD_ATTRIBUTE(capability(name))
#define HVD_SCOPED_CAPABILITY HVD_THREAD_ATTRIBUTE(scoped_lockable)
#define HVD_GUARDED_BY(x) HVD_THREAD_ATTRIBUTE(guarded_by(x))
#define HVD_REQUIRES(...) HVD_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define HVD_EXCLUDES(...) HVD_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define HVD_ACQUIRE(...) HVD_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define HVD_RELEASE(...) HVD_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define HVD_TRY_ACQUIRE(...) HVD_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define HVD_ASSERT_CAPABILITY(x) HVD_THREAD_ATTRIBUTE(assert_capability(x))
#define HVD_NO_THREAD_SAFETY_ANALYSIS HVD_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace hvd {

class HVD_CAPABILITY("mutex") Mutex {
 public:
  void lock() HVD_ACQUIRE() { mutex_.lock(); }
  void unlock() HVD_RELEASE() { mutex_.unlock(); }
  bool try_lock() HVD_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  std::mutex mutex_;
};

class HVD_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) HVD_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() HVD_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace hvd
