// stall_monitor.h - decides when operations that some ranks have submitted and others not are worth
// a warning, and when they end the job. Pure: gets the time and what waits, gives a report.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/settings.h"
#include "engine/operation/waiting.h"

namespace hvd::engine {

struct StallReport {
  std::string text;  // empty: nothing to say
  bool shut_down = false;
  std::vector<int> missing = {};  // set ranks that it names
};

class StallMonitor {
 public:
  explicit StallMonitor(const Settings& settings)
      : enabled_(!settings.stall_check_disable && settings.stall_check_time.count() > 0),
        check_time_(settings.stall_check_time),
        shutdown_time_(settings.stall_shutdown_time) {}

  // Often enough to be in time, seldom enough to cost nothing.
  bool is_due(TimePoint now) const { return enabled_ && now >= next_look_; }

  using LastDone = std::function<std::string(int set_rank)>;  // what a rank did last
  StallReport look(TimePoint now, uint32_t set, const std::vector<int32_t>& global_ranks,
                   const std::vector<Waiting>& waiting, const LastDone& last_done);
  void looked(TimePoint now) {
    next_look_ = now + std::min<Nanoseconds>(check_time_ / 4, std::chrono::seconds(5));
  }

 private:
  struct Seen {
    TimePoint since;
    TimePoint warned{};
    bool still_there = false;
    uint64_t ticket = 0;
  };
  const bool enabled_;
  const Nanoseconds check_time_;
  const Nanoseconds shutdown_time_;
  TimePoint next_look_{};
  std::map<std::pair<uint32_t, std::string>, Seen> seen_;
};

}  // namespace hvd::engine
