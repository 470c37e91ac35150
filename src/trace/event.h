// event.h - what the timeline is told, before it becomes JSON. Plain values; any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace hvd::trace {

enum class EventKind : uint8_t {
  kNegotiateStart,  // word: kind of operation
  kRankReady,       // number: rank in the process set
  kNegotiateEnd,
  kStart,          // word: kind of operation
  kActivityStart,  // word: activity
  kActivityEnd,
  kEnd,  // word: dtype, or empty on failure; shape
  kCycle,
  kMark,  // word: what
};

struct Event {
  EventKind kind = EventKind::kCycle;
  uint64_t micros = 0;  // since the trace was opened; set by the queue
  uint64_t age = 0;     // how many microseconds before it was reported it happened
  int32_t number = 0;
  std::string_view tensor{}, word{}, shape{};
};

}  // namespace hvd::trace
