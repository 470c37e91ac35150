#include "trace/timeline.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "base/thread_annotations.h"
#include "trace/encoder.h"
#include "trace/event_queue.h"
#include "trace/json_array_file.h"

namespace hvd::trace {
namespace {

// The queue is shared; encoder and file belong to the writer thread once it runs.
class FileTimeline final : public Timeline {
 public:
  FileTimeline(JsonArrayFile file, Encoder encoder, const Clock& clock)
      : queue_(clock, {}),
        encoder_(std::move(encoder)),
        file_(std::move(file)),
        writer_([this](const std::stop_token& stop) { write_until(stop); }) {}

  const std::string& path() const override { return file_.path(); }

  void negotiate_start(std::string_view tensor, std::string_view kind) override {
    queue_.push({.kind = EventKind::kNegotiateStart, .tensor = tensor, .word = kind});
  }
  void rank_ready(std::string_view tensor, int set_rank, Nanoseconds ago) override {
    const auto age = std::chrono::duration_cast<std::chrono::microseconds>(ago).count();
    queue_.push({.kind = EventKind::kRankReady,
                 .age = static_cast<uint64_t>(std::max<int64_t>(age, 0)),
                 .number = set_rank,
                 .tensor = tensor});
  }
  void negotiate_end(std::string_view tensor) override {
    queue_.push({.kind = EventKind::kNegotiateEnd, .tensor = tensor});
  }
  void start(std::string_view tensor, std::string_view kind) override {
    queue_.push({.kind = EventKind::kStart, .tensor = tensor, .word = kind});
  }
  void activity_start(std::string_view tensor, std::string_view activity) override {
    queue_.push({.kind = EventKind::kActivityStart, .tensor = tensor, .word = activity});
  }
  void activity_end(std::string_view tensor) override {
    queue_.push({.kind = EventKind::kActivityEnd, .tensor = tensor});
  }
  void end(std::string_view tensor, std::string_view dtype, std::string_view shape) override {
    queue_.push({.kind = EventKind::kEnd, .tensor = tensor, .word = dtype, .shape = shape});
  }
  void mark_cycle() override { queue_.push({.kind = EventKind::kCycle}); }
  void mark(std::string_view what) override {
    queue_.push({.kind = EventKind::kMark, .word = what});
  }

  Status flush() override {
    queue_.wait_until_written();
    const MutexLock lock(failure_mutex_);
    return failure_;
  }

 private:
  void write_until(const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), "hvd-timeline");
    std::string records;
    while (auto block = queue_.take(stop)) {
      records.clear();
      block->for_each([&](const Event& event) { encoder_.add(event, records); });
      write(records);
      queue_.finish(std::move(*block));
    }
    records.clear();
    encoder_.finish(queue_.now(), queue_.dropped(), records);
    write(records);
  }

  // After the first failure nothing more is written: the file stays as it was then.
  void write(const std::string& records) {
    if (failed_) return;
    Status status = file_.append(records);
    if (status.is_ok()) return;
    failed_ = true;
    HVD_LOG(kError, status.message(), "; the timeline ends here");
    const MutexLock lock(failure_mutex_);
    failure_ = std::move(status);
  }

  EventQueue queue_;
  Encoder encoder_;
  JsonArrayFile file_;
  bool failed_ = false;
  Mutex failure_mutex_;
  Status failure_ HVD_GUARDED_BY(failure_mutex_);
  std::jthread writer_;  // last: joined before anything it uses is destroyed
};

uint64_t micros_since_epoch() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

}  // namespace

Result<std::unique_ptr<Timeline>> Timeline::open(const std::string& path, uint64_t max_bytes,
                                                 const Clock& clock) {
  if (max_bytes < kMinTimelineBytes) {
    return invalid_argument(concat("timeline '", path, "': expected a limit of at least ",
                                   kMinTimelineBytes, " bytes, got ", max_bytes));
  }
  HVD_TRY_ASSIGN(JsonArrayFile file, JsonArrayFile::create(path));
  Encoder encoder(max_bytes);
  std::string header;
  encoder.header(micros_since_epoch(), header);
  HVD_TRY(file.append(header));
  return std::unique_ptr<Timeline>(
      std::make_unique<FileTimeline>(std::move(file), std::move(encoder), clock));
}

}  // namespace hvd::trace
