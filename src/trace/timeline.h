// timeline.h - a trace of what each tensor did, in Chrome/Perfetto JSON (spec: semantics, section
// 13). Events come from whoever holds the engine role or submits, over a bounded queue; a writer
// thread owns the file. The file is a valid JSON array after every batch. Bounded: when `max_bytes`
// is reached or the queue (1,048,576 records) is full, events are dropped and one closing note says
// how many. Event order per tensor: negotiate_start, [rank_ready]*, negotiate_end, start,
// [activity_start, activity_end]*, end. Nesting stays balanced per tensor even when the trace
// starts or stops in between.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace hvd::trace {

// Room for the header and the closing note.
inline constexpr uint64_t kMinTimelineBytes = 4096;

// Thread: any, for every function. None but flush() and the destructor blocks or does I/O.
class Timeline {
 public:
  // Blocks until the file is open and holds its header. `max_bytes` (at least kMinTimelineBytes)
  // bounds the file; `clock` stamps the events and must outlive the timeline.
  static Result<std::unique_ptr<Timeline>> open(const std::string& path, uint64_t max_bytes,
                                                const Clock& clock = Clock::steady());
  virtual ~Timeline() = default;  // drains the queue, closes the file

  virtual const std::string& path() const = 0;
  // `kind` is "ALLREDUCE" etc.; the event name becomes NEGOTIATE_<kind>.
  virtual void negotiate_start(std::string_view tensor, std::string_view kind) = 0;
  // `ago`: how long before this call the rank was ready. Never before the negotiation started.
  virtual void rank_ready(std::string_view tensor, int set_rank, Nanoseconds ago) = 0;
  virtual void negotiate_end(std::string_view tensor) = 0;
  virtual void start(std::string_view tensor, std::string_view kind) = 0;
  virtual void activity_start(std::string_view tensor, std::string_view activity) = 0;
  virtual void activity_end(std::string_view tensor) = 0;
  // Success: args {"dtype", "shape"}; pass empty dtype on failure.
  virtual void end(std::string_view tensor, std::string_view dtype, std::string_view shape) = 0;
  virtual void mark_cycle() = 0;
  // Something that concerns all tensors happened.
  virtual void mark(std::string_view what) = 0;
  virtual Status flush() = 0;  // blocks until everything queued is in the file
};

}  // namespace hvd::trace
