// What follows from the roster at a time: who goes, whether a world can be formed, who is started,
// whether the job is over.
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "launch/elastic/policy.h"

namespace hvd::launch {
namespace {

// What workers that are told to go need to end by themselves when the job has ended well.
constexpr std::chrono::seconds kFarewellTime{10};
constexpr uint32_t kRemovedChange = 1, kAddedChange = 2;

std::string seconds_text(Nanoseconds span) {
  // Rounded up: nobody is told "after 0 s".
  return concat((span.count() + 999'999'999) / 1'000'000'000, " s");
}

std::string count_text(int64_t count, std::string_view one, std::string_view many) {
  return concat(count, " ", count == 1 ? one : many);
}

}  // namespace

int Policy::count(Phase phase) const {
  return static_cast<int>(std::count_if(workers_.begin(), workers_.end(),
                                        [phase](const Worker& one) { return one.phase == phase; }));
}

bool Policy::has_running() const { return count(Phase::kRunning) > 0; }

int Policy::count_wanted() const {
  return static_cast<int>(
      std::count_if(workers_.begin(), workers_.end(), [this](const Worker& one) {
        return is_alive(one) && one.unwanted.empty() && !one.is_dismissed;
      }));
}

std::vector<Candidate> Policy::candidates() const {
  std::vector<Candidate> list;
  for (const Worker& worker : workers_) {
    if (worker.phase != Phase::kWaiting || !worker.unwanted.empty() || worker.is_dismissed) {
      continue;
    }
    list.push_back({.worker = worker.id,
                    .host = worker.host,
                    .last_rank = is_heir(worker) ? worker.rank : -1});
  }
  return list;
}

// Hosts in the order in which they became known; the lowest free slot.
std::optional<std::pair<std::string, int32_t>> Policy::free_slot(TimePoint now) const {
  std::optional<std::pair<std::string, int32_t>> best;
  int best_order = INT32_MAX;
  for (const auto& entry : hosts_) {
    const std::string& name = entry.first;
    const Host& host = entry.second;
    if (host.order > best_order || !host.cooldown.is_over(now)) continue;
    for (int32_t slot = 0; slot < host.slots; ++slot) {
      const bool is_taken = host.left.contains(slot) ||
                            std::any_of(workers_.begin(), workers_.end(), [&](const Worker& one) {
                              return is_alive(one) && one.host == name && one.slot == slot;
                            });
      if (is_taken) continue;
      best = {name, slot};
      best_order = host.order;
      break;
    }
  }
  return best;
}

bool Policy::may_more_come(TimePoint now) const {
  if (limits_.may_hosts_change || count(Phase::kStarting) > 0) return true;
  // A host that cools down may take workers later.
  for (const auto& entry : hosts_) {
    const std::string& name = entry.first;
    const Host& host = entry.second;
    if (host.slots == 0 || host.cooldown.is_for_good()) continue;
    const auto alive = std::count_if(workers_.begin(), workers_.end(), [&](const Worker& one) {
      return is_alive(one) && !one.is_dismissed && one.host == name;  // who is told to go, goes
    });
    if (host.slots > alive + static_cast<int64_t>(host.left.size())) return true;
  }
  return free_slot(now).has_value();
}

// A program that ends before init on every slot would do the same on others.
bool Policy::has_every_start_failed() const {
  bool has_slots = false;
  for (const auto& [name, host] : hosts_) {
    if (host.left.size() < static_cast<size_t>(host.slots)) return false;
    has_slots = has_slots || host.slots > 0;
  }
  return has_slots && has_slots_;
}

std::string Policy::causes_text() const {
  return causes_.empty() ? "the workers asked for it" : join_text(causes_, "; ", 4);
}

std::string Policy::cooling_text(TimePoint now) const {
  std::string text;
  for (const auto& [name, host] : hosts_) {
    if (host.slots == 0 || host.cooldown.is_over(now)) continue;
    text += host.cooldown.is_for_good() ? concat("; ", name, " gets no new workers any more")
                                        : concat("; ", name, " may get a new worker after ",
                                                 seconds_text(host.cooldown.until() - now));
  }
  return text;
}

void Policy::settle(TimePoint now, Actions& out) {
  if (is_over_) return;
  if (ended_at_) {
    end_well(now, out);
    return;
  }
  mark_unwanted(out);
  note_break(now, out);
  dismiss_unwanted(out);
  kill_late(now, out);
  blame_network(now, out);
  try_to_end(now, out);
  if (is_over_ || ended_at_) return;
  if (epoch_ == 0 && began_at_) start_workers(now, out);  // the first world waits for them
  try_to_form(now, out);
  if (is_over_) return;
  start_workers(now, out);
  if (!has_slots_ && !waiting_at_) wait_for_slots(now, out);
  tell_news(out);
}

// A host that shrinks loses its last slots. Nobody has been told yet, so this may be taken back.
void Policy::mark_unwanted(Actions& out) {
  for (Worker& worker : workers_) {
    if (!is_alive(worker)) continue;
    const Host& host = hosts_[worker.host];
    const bool was_wanted = worker.unwanted.empty();
    worker.unwanted.clear();
    if (worker.slot < host.slots) continue;
    worker.unwanted = host.slots == 0 ? concat("host ", worker.host, " was removed")
                                      : concat("host ", worker.host, " has only ",
                                               count_text(host.slots, "slot", "slots"), " now");
    if (!was_wanted) continue;
    out.push_back({.worker = worker.id,
                   .event = "unwanted",
                   .reason = concat(name_of(worker.id), " has to go: ", worker.unwanted)});
  }
}

void Policy::note_break(TimePoint now, Actions& out) {
  if (epoch_ == 0 || broken_at_ || !has_running()) {
    if (epoch_ > 0 && !broken_at_ && !has_running()) broken_at_ = now;
    return;
  }
  const bool is_broken = std::any_of(workers_.begin(), workers_.end(), [this](const Worker& one) {
    return is_member(one) && !one.has_succeeded &&
           (one.phase == Phase::kWaiting || (one.phase == Phase::kGone && one.rank >= 0));
  });
  if (!is_broken) return;
  broken_at_ = now;
  if (has_success_) return;  // nobody meets anybody any more
  for (const Worker& worker : workers_) {
    if (worker.phase != Phase::kRunning) continue;
    out.push_back({.kind = ActionKind::kBreak,
                   .worker = worker.id,
                   .epoch = epoch_,
                   .reason = causes_text()});
  }
}

void Policy::dismiss_unwanted(Actions& out) {
  for (Worker& worker : workers_) {
    if (!is_alive(worker) || worker.unwanted.empty() || worker.is_dismissed) continue;
    if (worker.phase == Phase::kRunning) continue;  // it finishes its step first
    worker.is_dismissed = true;
    const bool can_hear = worker.phase == Phase::kWaiting;
    out.push_back({.kind = can_hear ? ActionKind::kRemove : ActionKind::kKill,
                   .worker = worker.id,
                   .event = "removed",
                   .reason = worker.unwanted});
    causes_.push_back(concat(name_of(worker.id), " had to go: ", worker.unwanted));
  }
}

// By when members of a broken world have to be back; none: as late as they like. While one that has
// the state waits for them they have little time. Until then they may be in a long step or an
// evaluation, which does not notice what has become of the others. When somebody has finished, the
// others may be on their way to the end, which may be long.
std::optional<TimePoint> Policy::due_back_at() const {
  if (!broken_at_) return std::nullopt;
  const auto has = [this](auto&& is_one) {
    return std::any_of(workers_.begin(), workers_.end(), is_one);
  };
  const bool is_end_near =
      has_success_ || has([this](const Worker& one) { return is_alive(one) && one.has_succeeded; });
  if (!is_end_near) {
    const auto awaited = awaited_at();
    return awaited ? *awaited + limits_.ready_time : *broken_at_ + limits_.timeout;
  }
  const bool does_one_wait = has([this](const Worker& one) {
    return is_member(one) && one.phase == Phase::kWaiting && !one.is_dismissed;
  });
  return does_one_wait ? std::optional(*broken_at_ + limits_.timeout) : std::nullopt;
}

// Since when somebody who has the state waits for the other members of a broken world.
std::optional<TimePoint> Policy::awaited_at() const {
  std::optional<TimePoint> first;
  for (const Candidate& one : candidates()) {
    const TimePoint since = workers_[static_cast<size_t>(one.worker)].waiting_at;
    if (one.last_rank >= 0 && (!first || since < *first)) first = since;
  }
  return first;
}

// A frozen worker must not keep the others waiting. One whose training is over is not frozen, as
// far as anybody knows.
void Policy::kill_late(TimePoint now, Actions& out) {
  const auto due = due_back_at();
  if (!due || now < *due) return;
  const auto awaited = awaited_at();
  const bool is_awaited = awaited && *due == *awaited + limits_.ready_time;
  const std::string too_late =
      is_awaited ? concat(" kept others waiting for ", seconds_text(limits_.ready_time))
                 : concat(" did not come back within ", seconds_text(limits_.timeout));
  for (Worker& worker : workers_) {
    if (worker.phase != Phase::kRunning || worker.is_dismissed || worker.has_succeeded) continue;
    worker.is_dismissed = true;
    const std::string what =
        concat(name_of(worker.id), too_late, " after epoch ", epoch_, " broke");
    out.push_back({.kind = ActionKind::kKill,
                   .worker = worker.id,
                   .event = "killed",
                   .reason = concat(what, " (", causes_text(), ") and is killed")});
    causes_.push_back(what);
  }
}

void Policy::try_to_end(TimePoint now, Actions& out) {
  if (!began_at_ || has_running()) return;
  if (has_success_ && (epoch_ > 0 || count(Phase::kStarting) == 0)) {
    end_well(now, out);
    return;
  }
  if (epoch_ == 0) {
    if (count(Phase::kStarting) + count(Phase::kWaiting) == 0 &&
        (!may_more_come(now) || has_every_start_failed())) {
      end_badly(concat("no worker came as far as init: ", causes_text()), out);
    }
    return;
  }
  const auto waiting = candidates();
  const bool has_state = std::any_of(waiting.begin(), waiting.end(),
                                     [](const Candidate& one) { return one.last_rank >= 0; });
  if (has_state) return;
  const bool were_all_asked =
      std::all_of(workers_.begin(), workers_.end(),
                  [this](const Worker& one) { return !is_member(one) || one.is_leaving; });
  end_badly(
      concat(were_all_asked ? "all workers that had the state of the training were asked to leave: "
                            : "no worker that has the state of the training is left: ",
             causes_text()),
      out);
}

void Policy::try_to_form(TimePoint now, Actions& out) {
  if (!began_at_ || has_running()) return;
  std::vector<Candidate> all = candidates();
  const auto have = static_cast<int32_t>(all.size());
  const bool is_first = epoch_ == 0;
  if (is_first && !has_slots_) {
    wait_for_slots(now, out);
    return;
  }
  const bool is_patient =
      is_first ? count(Phase::kStarting) > 0 && now - *began_at_ < time_to_begin()
               : now - *broken_at_ < limits_.ready_time &&
                     std::any_of(workers_.begin(), workers_.end(),
                                 [this](const Worker& one) { return is_start_awaited(one); });
  if (is_patient) return;
  if (have < limits_.least) {
    wait_for_more(now, have, out);
    return;
  }
  if (!is_first && limits_.resets && resets() >= *limits_.resets) {
    end_badly(concat("the number of resets during elastic job exceeded limit: ", *limits_.resets,
                     " (", causes_text(), ")"),
              out);
    return;
  }
  form(std::move(all), now, out);
}

// With whole hosts, those that are started while a world runs, or instead of some of its members.
bool Policy::is_start_awaited(const Worker& worker) const {
  return limits_.whole_hosts && worker.phase == Phase::kStarting && worker.unwanted.empty() &&
         !worker.is_dismissed && !worker.is_overdue;
}

// With whole hosts the time-out is for slots alone, as in the original: programs set it to a
// second.
Nanoseconds Policy::time_to_begin() const {
  return limits_.whole_hosts ? std::max(limits_.timeout, limits_.ready_time) : limits_.timeout;
}

// The job begins as large as it was asked to; from then on --min-np is enough.
void Policy::wait_for_slots(TimePoint now, Actions& out) {
  int64_t slots = 0;
  for (const auto& [name, host] : hosts_) slots += host.slots;
  const std::string have = concat("the hosts have ", count_text(slots, "slot", "slots"),
                                  ", the job needs ", limits_.first, " to start (-np)");
  if (!waiting_at_) {
    waiting_at_ = now;
    out.push_back(
        {.event = "waiting",
         .reason = concat(have, ": waiting for more, at most ", seconds_text(limits_.timeout))});
  }
  if (now - *waiting_at_ < limits_.timeout) return;
  end_badly(concat(have, "; more did not come within ", seconds_text(limits_.timeout),
                   " (--elastic-timeout)"),
            out);
}

void Policy::wait_for_more(TimePoint now, int32_t have, Actions& out) {
  if (!may_more_come(now)) {
    end_badly(concat("only ", have, " of at least ", count_text(limits_.least, "worker", "workers"),
                     " remain and no host can take another: ", causes_text(), cooling_text(now)),
              out);
    return;
  }
  if (!waiting_at_) {
    waiting_at_ = now;
    out.push_back({.event = "waiting",
                   .reason = concat(causes_text(), "; ", have, " of at least ",
                                    count_text(limits_.least, "worker is", "workers are"),
                                    " ready: waiting for more, at most ",
                                    seconds_text(limits_.timeout), cooling_text(now))});
  }
  if (now - *waiting_at_ < limits_.timeout) return;
  end_badly(concat("only ", have, " of at least ", count_text(limits_.least, "worker", "workers"),
                   " came within ", seconds_text(limits_.timeout),
                   " (--elastic-timeout): ", causes_text(), cooling_text(now)),
            out);
}

void Policy::form(std::vector<Candidate> all, TimePoint now, Actions& out) {
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return (a.last_rank >= 0) > (b.last_rank >= 0);  // survivors come before newcomers
  });
  if (all.size() > static_cast<size_t>(limits_.most)) all.resize(static_cast<size_t>(limits_.most));
  const auto newcomers =
      std::count_if(all.begin(), all.end(), [](const Candidate& one) { return one.last_rank < 0; });
  const auto size = static_cast<int64_t>(all.size());
  ++epoch_;
  std::string reason = concat("epoch ", epoch_, " with ", count_text(size, "rank", "ranks"));
  if (epoch_ > 1) {
    reason = concat(causes_.empty() && newcomers > 0 ? "newcomers have come" : causes_text(), "; ",
                    size - newcomers, " of at least ",
                    count_text(limits_.least, "worker remains", "workers remain"),
                    newcomers > 0 ? concat(", ", newcomers, newcomers == 1 ? " joins" : " join")
                                  : std::string(),
                    ": new epoch ", epoch_, " with ", count_text(size, "rank", "ranks"),
                    cooling_text(now));
  }
  out.push_back({.epoch = epoch_, .event = "epoch", .reason = reason});
  for (Worker& worker : workers_) {
    worker.rank = -1;  // who has no place has no part in it
    worker.is_overdue = worker.is_overdue || worker.phase == Phase::kStarting;
  }
  for (const Placed& placed : place_workers(all, epoch_)) {
    Worker& worker = workers_[static_cast<size_t>(placed.worker)];
    worker.phase = Phase::kRunning;
    worker.rank = placed.place.rank;
    out.push_back({.kind = ActionKind::kAssign,
                   .worker = worker.id,
                   .place = placed.place,
                   .epoch = epoch_,
                   .reason = reason});
  }
  broken_at_.reset();
  waited_at_ = std::exchange(waiting_at_, std::nullopt);
  told_changes_ = 0;
  missed_.clear();
  causes_.clear();
}

void Policy::start_workers(TimePoint now, Actions& out) {
  if (has_success_) return;
  while (count_wanted() < limits_.most) {
    const auto slot = free_slot(now);
    if (!slot) break;
    const auto id = static_cast<int32_t>(workers_.size());
    workers_.push_back({.id = id, .host = slot->first, .slot = slot->second});
    out.push_back({.kind = ActionKind::kStart,
                   .worker = id,
                   .host = slot->first,
                   .slot = slot->second,
                   .event = began_at_ ? "started" : "",
                   .reason = concat("worker ", id, " is started on host ", slot->first,
                                    ", which has a free slot")});
  }
  if (!began_at_) began_at_ = now;
}

uint32_t Policy::pending_changes() const {
  uint32_t changes = 0;
  int in_world = 0;
  for (const Worker& worker : workers_) {
    if (worker.phase != Phase::kRunning) continue;
    ++in_world;
    if (!worker.unwanted.empty()) changes |= kRemovedChange;
  }
  const bool is_newcomer_ready = count(Phase::kWaiting) > 0 && !candidates().empty();
  const bool does_one_come =
      std::any_of(workers_.begin(), workers_.end(),
                  [this](const Worker& one) { return is_start_awaited(one); });
  if ((is_newcomer_ready || does_one_come) && in_world < limits_.most) changes |= kAddedChange;
  return changes;
}

// The training takes part in a change when it likes: at its next commit.
void Policy::tell_news(Actions& out) {
  if (epoch_ == 0 || broken_at_ || has_success_) return;
  const uint32_t changes = pending_changes();
  if (changes == told_changes_) return;
  told_changes_ = changes;
  for (const Worker& worker : workers_) {
    if (worker.phase != Phase::kRunning) continue;
    out.push_back({.kind = ActionKind::kNews, .worker = worker.id, .changes = changes});
  }
}

void Policy::end_well(TimePoint now, Actions& out) {
  const bool is_new = !ended_at_;
  if (is_new) {
    ended_at_ = now;
    for (Worker& worker : workers_) {
      if (!is_alive(worker)) continue;
      const bool can_hear = worker.phase == Phase::kWaiting;
      worker.is_dismissed = true;
      out.push_back({.kind = can_hear ? ActionKind::kRemove : ActionKind::kKill,
                     .worker = worker.id,
                     .reason = "the job has ended: other workers have finished"});
    }
  }
  const bool is_late = now - *ended_at_ >= kFarewellTime;
  const int alive = static_cast<int>(std::count_if(
      workers_.begin(), workers_.end(), [this](const Worker& one) { return is_alive(one); }));
  if (alive > 0 && !is_late) return;
  is_over_ = true;
  out.push_back({.kind = ActionKind::kEnd,
                 .exit_code = 0,
                 .event = "end",
                 .reason = "the workers have finished"});
}

void Policy::end_badly(std::string reason, Actions& out) {
  is_over_ = true;
  out.push_back({.kind = ActionKind::kEnd,
                 .exit_code = failed_code_,
                 .event = "end",
                 .reason = std::move(reason)});
}

TimePoint Policy::wake_at(TimePoint now) const {
  TimePoint when = TimePoint::max();
  if (is_over_) return when;
  // What was due has been done at that time.
  const auto at = [&when, now](TimePoint time) {
    if (time > now) when = std::min(when, time);
  };
  if (ended_at_) at(*ended_at_ + kFarewellTime);
  if (const auto due = due_back_at(); due && has_running()) at(*due);
  if (waiting_at_) at(*waiting_at_ + limits_.timeout);
  if (began_at_ && epoch_ == 0) at(*began_at_ + time_to_begin());
  if (broken_at_ && limits_.whole_hosts) at(*broken_at_ + limits_.ready_time);
  for (const auto& [name, host] : hosts_) {
    if (host.slots > 0 && !host.cooldown.is_over(now) && !host.cooldown.is_for_good()) {
      at(host.cooldown.until());
    }
  }
  return when;
}

}  // namespace hvd::launch
