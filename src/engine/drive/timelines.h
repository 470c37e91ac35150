// timelines.h - the timeline that rank 0 writes, and those it wrote before: another thread may be
// about to write to one that was stopped, so all stay until the engine goes. Starting and stopping:
// any thread, may block as the file system does. Reading current(): one load.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "base/status.h"
#include "base/thread_annotations.h"
#include "engine/sets/surroundings.h"
#include "trace/timeline.h"

namespace hvd::engine {

class Timelines {
 public:
  explicit Timelines(const Surroundings& surroundings) : surroundings_(surroundings) {}

  bool is_armed() const { return !surroundings_.settings.timeline.empty(); }
  // What HOROVOD_TIMELINE asks for at init.
  Status start_configured() HVD_EXCLUDES(mutex_);
  Status start(const std::string& path, bool mark_cycles) HVD_EXCLUDES(mutex_);
  Status stop() HVD_EXCLUDES(mutex_);
  // Completes the files. Other threads may still be on their way out of a call.
  void end() HVD_EXCLUDES(mutex_);

  // Null: off.
  const std::atomic<trace::Timeline*>& current() const { return current_; }
  void mark_cycle() const {
    if (HVD_LIKELY(!mark_cycles_.load(std::memory_order_relaxed))) return;
    if (trace::Timeline* trace = current_.load(std::memory_order_acquire)) trace->mark_cycle();
  }

 private:
  const Surroundings& surroundings_;
  std::atomic<trace::Timeline*> current_{nullptr};
  std::atomic<bool> mark_cycles_{false};
  Mutex mutex_;
  std::vector<std::unique_ptr<trace::Timeline>> all_ HVD_GUARDED_BY(mutex_);  // last: in use
};

}  // namespace hvd::engine
