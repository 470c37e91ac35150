#include "trace/event_queue.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/status.h"

namespace hvd::trace {
namespace {

constexpr size_t kBlockBytes = 64 << 10;
// Two are in use in a steady state; the rest of a burst goes back to the system.
constexpr size_t kMaxSpareBlocks = 4;
// Waking a sleeping thread costs the caller microseconds. Gathering makes that once per this time
// at most, and the file is never further behind than this.
constexpr std::chrono::milliseconds kGatherTime{20};

struct PackedHeader {
  uint64_t micros;
  uint32_t tensor_bytes, word_bytes, shape_bytes;
  int32_t number;
  EventKind kind;
};

}  // namespace

EventBlock::EventBlock(size_t capacity)
    : capacity_(capacity), data_(std::make_unique_for_overwrite<char[]>(capacity)) {}

size_t EventBlock::packed_bytes(const Event& event) {
  return sizeof(PackedHeader) + event.tensor.size() + event.word.size() + event.shape.size();
}

void EventBlock::append(const Event& event) {
  const PackedHeader header{.micros = event.micros,
                            .tensor_bytes = static_cast<uint32_t>(event.tensor.size()),
                            .word_bytes = static_cast<uint32_t>(event.word.size()),
                            .shape_bytes = static_cast<uint32_t>(event.shape.size()),
                            .number = event.number,
                            .kind = event.kind};
  HVD_ASSERT(has_room(packed_bytes(event)), "the queue opens a block that fits");
  char* to = data_.get() + used_;
  std::memcpy(to, &header, sizeof header);
  to += sizeof header;
  for (const std::string_view text : {event.tensor, event.word, event.shape}) {
    to = std::copy(text.begin(), text.end(), to);
  }
  used_ = static_cast<size_t>(to - data_.get());
  ++event_count_;
}

void EventBlock::for_each(const std::function<void(const Event&)>& visit) const {
  const char* from = data_.get();
  for (size_t i = 0; i < event_count_; ++i) {
    PackedHeader header;
    std::memcpy(&header, from, sizeof header);
    from += sizeof header;
    const auto next = [&from](uint32_t bytes) {
      return std::string_view(std::exchange(from, from + bytes), bytes);
    };
    Event event{.kind = header.kind, .micros = header.micros, .number = header.number};
    event.tensor = next(header.tensor_bytes);
    event.word = next(header.word_bytes);
    event.shape = next(header.shape_bytes);
    visit(event);
  }
}

EventQueue::EventQueue(const Clock& clock, const Limits& limits)
    : clock_(clock), limits_(limits), start_(clock.now()) {}

uint64_t EventQueue::now() const {
  const auto span = std::chrono::duration_cast<std::chrono::microseconds>(clock_.now() - start_);
  return static_cast<uint64_t>(std::max<int64_t>(span.count(), 0));
}

// Makes the last block one with room for `bytes`, within the limits.
bool EventQueue::make_room(size_t bytes) {
  if (held_events_ >= limits_.events) return false;
  if (!blocks_.empty() && blocks_.back().has_room(bytes)) return true;
  const size_t capacity = std::max(kBlockBytes, bytes);
  if (held_bytes_ + capacity > limits_.bytes) return false;
  if (!spare_.empty() && capacity == kBlockBytes) {
    blocks_.push_back(std::move(spare_.back()));
    spare_.pop_back();
  } else {
    blocks_.emplace_back(capacity);
  }
  held_bytes_ += capacity;
  return true;
}

void EventQueue::push(const Event& event) {
  bool wake = false;
  {
    const MutexLock lock(mutex_);
    if (!make_room(EventBlock::packed_bytes(event))) {
      ++dropped_;
      return;
    }
    Event stamped = event;
    stamped.micros = now();  // under the lock, so that the queue is in order of time
    stamped.micros -= std::min(stamped.micros, event.age);
    blocks_.back().append(stamped);
    ++held_events_;
    ++pushed_;
    wake = writer_state_ == WriterState::kIdle ||
           (writer_state_ == WriterState::kGathering && blocks_.size() > 1);
    if (wake) writer_state_ = WriterState::kBusy;
  }
  if (wake) writer_wakes_.notify_one();
}

void EventQueue::wait_until_written() {
  const MutexLock lock(mutex_);
  const uint64_t target = pushed_;
  ++waiters_;
  writer_wakes_.notify_one();
  written_grew_.wait(mutex_, [&]() HVD_REQUIRES(mutex_) { return written_ >= target; });
  --waiters_;
}

uint64_t EventQueue::dropped() {
  const MutexLock lock(mutex_);
  return dropped_;
}

std::optional<EventBlock> EventQueue::take(const std::stop_token& stop) {
  const MutexLock lock(mutex_);
  if (blocks_.empty()) {
    writer_state_ = WriterState::kIdle;
    writer_wakes_.wait(mutex_, stop, [&]() HVD_REQUIRES(mutex_) { return !blocks_.empty(); });
  }
  if (blocks_.size() == 1) {
    writer_state_ = WriterState::kGathering;
    writer_wakes_.wait_for(mutex_, stop, kGatherTime, [&]() HVD_REQUIRES(mutex_) {
      return blocks_.size() > 1 || waiters_ > 0;
    });
  }
  writer_state_ = WriterState::kBusy;
  if (blocks_.empty()) return std::nullopt;
  EventBlock block = std::move(blocks_.front());
  blocks_.pop_front();
  return block;
}

void EventQueue::finish(EventBlock block) {
  const MutexLock lock(mutex_);
  held_events_ -= block.event_count();
  held_bytes_ -= block.capacity();
  written_ += block.event_count();
  if (block.capacity() == kBlockBytes && spare_.size() < kMaxSpareBlocks) {
    block.clear();
    spare_.push_back(std::move(block));
  }
  if (waiters_ > 0) written_grew_.notify_all();
}

}  // namespace hvd::trace
