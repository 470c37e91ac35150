// elastic_log.h - the decisions of an elastic job as lines of JSON, and their sum at the end. One
// thread; blocks for the file system only. A file that cannot be written costs the log, not the
// job.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "launch/elastic/action.h"

namespace hvd::launch {

class ElasticLog {
 public:
  // An empty path: no file.
  static Result<ElasticLog> open(const std::string& path);

  struct Entry {
    std::string event;
    uint64_t epoch = 0;
    int32_t worker = -1;  // -1: none
    std::string reason;
  };
  void write(const Entry& entry) const;

 private:
  UniqueFd file_;
};

// What resets cost: from a break to the next world. Pure.
class ResetCosts {
 public:
  void note_break(TimePoint now);
  // A worker has failed: one of those that run breaks their world.
  void note_failure(TimePoint now, int32_t worker, std::span<const int32_t> running);
  void note_world(TimePoint now, uint64_t epoch, std::string reason);
  // "2 resets, 0.31 s without a world: ..."; empty if there was none.
  std::string text() const;

 private:
  std::optional<TimePoint> broken_at_;
  Nanoseconds total_{};
  uint64_t resets_ = 0;
  std::vector<std::string> lines_;
};

}  // namespace hvd::launch
