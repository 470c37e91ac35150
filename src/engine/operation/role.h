// role.h - the engine role and the submit lock of one rank: two bits of one word in shared memory,
// so that peers can see whether anybody drives this rank. Role: the right to step the engine, held
// by a waiter or by the background thread. Submit: a short lock around publishing. One call that
// does both takes both with a single compare-and-swap (RoleAndSubmit). To the compiler they are
// engine_role and submit_side; here, where a right is a bit, it has to believe us.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "base/cpu.h"
#include "base/engine_role.h"
#include "base/explore.h"
#include "base/thread_annotations.h"
#include "shm/job_layout.h"

namespace hvd::engine {

class SubmitLock {
 public:
  explicit SubmitLock(std::atomic<uint32_t>& word) : word_(word) {}

  bool try_lock() HVD_TRY_ACQUIRE(true, submit_side) {
    uint32_t seen = word_.load(std::memory_order_relaxed);
    if ((seen & shm::kSubmitBit) != 0 ||
        !word_.compare_exchange_weak(seen, seen | shm::kSubmitBit, std::memory_order_acquire))
      return false;
    note_taken();
    return true;
  }
  void lock() HVD_ACQUIRE(submit_side) {
    for (int tries = 0; !try_lock(); ++tries) {
      schedule_point("wait for the submit lock");
      // The holder copies at most a small payload; if it lost its core, give it ours.
      if (tries < 200)
        cpu_pause();
      else
        sched_yield();
    }
  }
  // A full fence: orders what was published before the question who sleeps.
  void unlock() HVD_RELEASE(submit_side) HVD_NO_THREAD_SAFETY_ANALYSIS {
    note_free();
    word_.fetch_and(~shm::kSubmitBit, std::memory_order_seq_cst);
  }
  bool is_held() const { return is_held_.load(std::memory_order_relaxed); }

 private:
  friend class RoleAndSubmit;
  // What this process knows, to be compared with the word in shared memory: told by whoever takes
  // or drops the bit.
  void note_taken() { is_held_.store(true, std::memory_order_relaxed); }
  void note_free() { is_held_.store(false, std::memory_order_relaxed); }

  std::atomic<uint32_t>& word_;
  std::atomic<bool> is_held_{false};
};

class EngineRole {
 public:
  explicit EngineRole(std::atomic<uint32_t>& word) : word_(word) {}

  bool try_take() HVD_TRY_ACQUIRE(true, engine_role) {
    uint32_t seen = word_.load(std::memory_order_relaxed);
    while ((seen & shm::kRoleBit) == 0) {
      if (word_.compare_exchange_weak(seen, seen | shm::kRoleBit, std::memory_order_seq_cst)) {
        note_taken();
        return true;
      }
    }
    return false;
  }
  void give_back() HVD_RELEASE(engine_role) HVD_NO_THREAD_SAFETY_ANALYSIS {
    is_held_.store(false, std::memory_order_relaxed);
    word_.fetch_and(~shm::kRoleBit, std::memory_order_seq_cst);
  }
  // See SubmitLock.
  bool is_held() const { return is_held_.load(std::memory_order_relaxed); }
  // A full fence that every tool understands: a read-modify-write of a word this rank owns.
  void fence() { word_.fetch_or(0, std::memory_order_seq_cst); }
  bool is_taken() const { return (word_.load(std::memory_order_seq_cst) & shm::kRoleBit) != 0; }

 private:
  friend class RoleAndSubmit;
  void note_taken() { is_held_.store(true, std::memory_order_relaxed); }

  std::atomic<uint32_t>& word_;
  std::atomic<bool> is_held_{false};
};

// Both at once, for one call that submits and waits: one compare-and-swap instead of two, and a
// plain store where the second would give the lock back.
class RoleAndSubmit {
 public:
  RoleAndSubmit(EngineRole& role, SubmitLock& lock) : role_(role), lock_(lock) {}

  bool try_take() HVD_TRY_ACQUIRE(true, engine_role, submit_side) {
    uint32_t free = 0;
    if (!role_.word_.compare_exchange_strong(free, shm::kRoleBit | shm::kSubmitBit,
                                             std::memory_order_acquire))
      return false;
    role_.note_taken();
    lock_.note_taken();
    return true;
  }
  // Keeps the role. Both bits are ours, so nobody else writes the word.
  void drop_submit() HVD_REQUIRES(engine_role)
      HVD_RELEASE(submit_side) HVD_NO_THREAD_SAFETY_ANALYSIS {
    lock_.note_free();
    role_.word_.store(shm::kRoleBit, std::memory_order_release);
  }

 private:
  EngineRole& role_;
  SubmitLock& lock_;
};

class HVD_SCOPED_CAPABILITY SubmitGuard {
 public:
  explicit SubmitGuard(SubmitLock& lock) HVD_ACQUIRE(submit_side) : lock_(lock) { lock_.lock(); }
  ~SubmitGuard() HVD_RELEASE() { lock_.unlock(); }
  SubmitGuard(const SubmitGuard&) = delete;
  SubmitGuard& operator=(const SubmitGuard&) = delete;

 private:
  SubmitLock& lock_;
};

}  // namespace hvd::engine
