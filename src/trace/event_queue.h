// event_queue.h - the bounded queue between those who report events and the one thread that writes
// them. Events are packed one after the other, strings included, into blocks that are allocated as
// needed and used again; a push is one short critical section and wakes the writer only when it
// sleeps.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "base/clock.h"
#include "base/thread_annotations.h"
#include "trace/event.h"

namespace hvd::trace {

// A run of packed events. Not shared: owned by the queue, then by the writer.
class EventBlock {
 public:
  explicit EventBlock(size_t capacity);
  static size_t packed_bytes(const Event& event);
  bool has_room(size_t bytes) const { return capacity_ - used_ >= bytes; }
  void append(const Event& event);  // only if there is room
  void for_each(const std::function<void(const Event&)>& visit) const;
  void clear() { used_ = event_count_ = 0; }

  size_t capacity() const { return capacity_; }
  size_t event_count() const { return event_count_; }

 private:
  size_t capacity_;
  size_t used_ = 0;
  size_t event_count_ = 0;
  std::unique_ptr<char[]> data_;
};

// Thread: push(), wait_until_written(), now(), dropped() from any; take() and finish() by the
// writer.
class EventQueue {
 public:
  struct Limits {
    size_t events = 1 << 20;           // as the original
    size_t bytes = size_t{256} << 20;  // of blocks: long names must not eat the memory of the job
  };
  // Time 0 is now. `clock` must outlive the queue.
  EventQueue(const Clock& clock, const Limits& limits);

  // Stamps and copies the event, or counts it as dropped when the queue is full. Never blocks on
  // I/O.
  void push(const Event& event) HVD_EXCLUDES(mutex_);
  // Blocks until all events pushed before the call are written.
  void wait_until_written() HVD_EXCLUDES(mutex_);
  uint64_t now() const;  // microseconds since time 0
  uint64_t dropped() HVD_EXCLUDES(mutex_);

  // The oldest block. Sleeps while there is none, then lets more events gather for a moment unless
  // somebody waits for them. Empty: stop was requested and everything has been taken.
  std::optional<EventBlock> take(const std::stop_token& stop) HVD_EXCLUDES(mutex_);
  // The block is in the file (or lost for good).
  void finish(EventBlock block) HVD_EXCLUDES(mutex_);

 private:
  enum class WriterState { kBusy, kIdle, kGathering };

  bool make_room(size_t bytes) HVD_REQUIRES(mutex_);

  const Clock& clock_;
  const Limits limits_;
  const TimePoint start_;

  Mutex mutex_;
  // Full blocks and, last, the one being filled.
  std::deque<EventBlock> blocks_ HVD_GUARDED_BY(mutex_);
  std::vector<EventBlock> spare_ HVD_GUARDED_BY(mutex_);
  // Events and bytes of blocks, from push to finish: what the limits count.
  size_t held_events_ HVD_GUARDED_BY(mutex_) = 0;
  size_t held_bytes_ HVD_GUARDED_BY(mutex_) = 0;
  uint64_t pushed_ HVD_GUARDED_BY(mutex_) = 0;
  uint64_t written_ HVD_GUARDED_BY(mutex_) = 0;
  uint64_t dropped_ HVD_GUARDED_BY(mutex_) = 0;
  size_t waiters_ HVD_GUARDED_BY(mutex_) = 0;  // in wait_until_written
  WriterState writer_state_ HVD_GUARDED_BY(mutex_) = WriterState::kBusy;
  std::condition_variable_any writer_wakes_;
  std::condition_variable_any written_grew_;
};

}  // namespace hvd::trace
