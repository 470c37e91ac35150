#include "engine/health/stall_monitor.h"

#include <cstdio>

#include "base/text.h"

namespace hvd::engine {
namespace {

double seconds(Nanoseconds span) { return std::chrono::duration<double>(span).count(); }

}  // namespace

StallReport StallMonitor::look(TimePoint now, uint32_t set,
                               const std::vector<int32_t>& global_ranks,
                               const std::vector<Waiting>& waiting, const LastDone& last_done) {
  for (auto& [key, seen] : seen_) {
    if (key.first == set) seen.still_there = false;
  }
  std::map<int, std::vector<std::string>> stalled;  // set rank -> what it misses
  bool shut_down = false;
  Nanoseconds oldest{0};
  for (const Waiting& item : waiting) {
    Seen& seen = seen_.try_emplace({set, item.name}, Seen{now}).first->second;
    // The same name submitted again is another wait.
    if (seen.ticket != item.ticket) seen = Seen{now};
    seen.ticket = item.ticket;
    seen.still_there = true;
    const Nanoseconds age = now - seen.since;
    const bool too_old =
        shutdown_time_.count() > 0 && shutdown_time_ >= check_time_ && age >= shutdown_time_;
    if (age < check_time_ ||
        (!too_old && now - seen.warned < check_time_ && seen.warned != TimePoint{}))
      continue;
    seen.warned = now;
    shut_down = shut_down || too_old;
    oldest = std::max(oldest, age);
    char since[32];
    std::snprintf(since, sizeof since, " (%.0f s)", seconds(age));
    for (const int rank : item.missing) stalled[rank].push_back(item.name + since);
  }
  std::erase_if(seen_, [&](const auto& entry) {
    return entry.first.first == set && !entry.second.still_there;
  });
  if (stalled.empty()) return {};

  std::string text = concat(
      "One or more operations were submitted by some ranks and are awaited from others for more "
      "than ",
      static_cast<int64_t>(seconds(check_time_)),
      " s. Either a rank is slow, or ranks submit different operations, which never completes.\n"
      "Process set ",
      set, ", missing ranks and what they miss:");
  std::vector<int> missing;
  for (const auto& [rank, names] : stalled) {
    missing.push_back(rank);
    const auto global = global_ranks[static_cast<size_t>(rank)];
    text += concat("\n", global, shut_down ? "!" : "", ": [", join_text(names, ", ", 6), "]");
    const std::string last = last_done(rank);
    text += concat("\n   rank ", global, " did last: ", last.empty() ? "nothing yet" : last);
  }
  return {text, shut_down, missing};
}

}  // namespace hvd::engine
