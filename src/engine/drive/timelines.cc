#include "engine/drive/timelines.h"

#include "base/log.h"

namespace hvd::engine {

Status Timelines::start_configured() {
  const Settings& settings = surroundings_.settings;
  if (settings.timeline.empty() || settings.timeline == "DYNAMIC") return Status::ok();
  return start(settings.timeline, settings.timeline_mark_cycles);
}

Status Timelines::start(const std::string& path, bool mark_cycles) {
  if (!is_armed()) {
    return precondition_error(
        "timeline: not armed; set HOROVOD_TIMELINE=DYNAMIC (or a path) before init on all ranks");
  }
  if (surroundings_.rank() != 0) return Status::ok();
  MutexLock lock(mutex_);
  trace::Timeline* now = current_.load();
  if (now != nullptr && now->path() == path) return Status::ok();
  const auto most_bytes = static_cast<uint64_t>(surroundings_.settings.timeline_max_bytes);
  HVD_TRY_ASSIGN(auto timeline, trace::Timeline::open(path, most_bytes));
  all_.push_back(std::move(timeline));
  if (mark_cycles) all_.back()->mark_cycle();  // the first cycle is the one that begins now
  mark_cycles_.store(mark_cycles);
  current_.store(all_.back().get());
  return now == nullptr ? Status::ok() : now->flush();
}

Status Timelines::stop() {
  if (surroundings_.rank() != 0) return Status::ok();
  MutexLock lock(mutex_);
  trace::Timeline* timeline = current_.exchange(nullptr);
  if (timeline == nullptr) {
    HVD_LOG(kInfo, "timeline: already stopped");
    return Status::ok();
  }
  mark_cycles_.store(false);
  // A thread may be about to write to it: it stays until shutdown, its file is complete now.
  return timeline->flush();
}

void Timelines::end() {
  MutexLock lock(mutex_);
  current_.store(nullptr);
  for (const auto& timeline : all_) (void)timeline->flush().is_ok();
}

}  // namespace hvd::engine
