// set_changes.h - what callers ask of the role holder when members open or close a process set
// among themselves. A caller adds a change and waits; whoever holds the role settles it when the
// time has come. A caller that has waited long enough takes it back. Both take it first, so one of
// them wins. Thread: any.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/thread_annotations.h"
#include "shm/meeting_table.h"

namespace hvd::engine {

struct SetChange {
  enum class Kind { kMeet, kLeave };
  Kind kind = Kind::kMeet;
  std::string key = {};             // meet
  std::vector<int32_t> ranks = {};  // meet
  shm::MeetingPlace place = {};     // meet: where; leave: what was left
  int32_t id = -1;                  // leave
  Deadline deadline = Deadline::never();
  Status status = {};  // readable when settled

  // The right to settle it.
  bool take() {
    uint32_t waiting = kWaiting;
    return state_.compare_exchange_strong(waiting, kTaken);
  }
  void settle(Status result) {
    status = std::move(result);
    state_.store(kSettled, std::memory_order_release);
  }
  void put_back() { state_.store(kWaiting); }
  bool is_waiting() const { return state_.load(std::memory_order_relaxed) == kWaiting; }
  bool is_settled() const { return state_.load(std::memory_order_acquire) == kSettled; }
  // Somebody else has taken it: that takes a moment.
  void wait_until_settled() const {
    while (!is_settled()) sched_yield();
  }

 private:
  static constexpr uint32_t kWaiting = 0, kTaken = 1, kSettled = 2;
  std::atomic<uint32_t> state_{kWaiting};
};

class SetChanges {
 public:
  using Item = std::shared_ptr<SetChange>;  // second owner: the caller that waits

  bool any() const { return count_.load(std::memory_order_relaxed) != 0; }
  void add(const Item& change) HVD_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    items_.push_back(change);
    count_.store(static_cast<uint32_t>(items_.size()), std::memory_order_seq_cst);
  }
  void remove(const Item& change) HVD_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    std::erase(items_, change);
    count_.store(static_cast<uint32_t>(items_.size()), std::memory_order_seq_cst);
  }
  std::vector<Item> all() const HVD_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return items_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<Item> items_ HVD_GUARDED_BY(mutex_);
  std::atomic<uint32_t> count_{0};  // of items_; any() may be a moment late
};

}  // namespace hvd::engine
