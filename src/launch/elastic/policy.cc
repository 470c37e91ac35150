// The events: what each changes in the roster. policy_settle.cc decides what follows.
#include "launch/elastic/policy.h"

#include <algorithm>

#include "base/interrupt.h"
#include "base/text.h"

namespace hvd::launch {
namespace {

constexpr int kMostFailedStarts = 3;

}  // namespace

std::string Policy::name_of(int32_t worker) const {
  const Worker& one = workers_[static_cast<size_t>(worker)];
  return one.rank >= 0 ? concat("rank ", one.rank, " on ", one.host)
                       : concat("worker ", worker, " on ", one.host);
}

std::vector<int32_t> Policy::running() const {
  std::vector<int32_t> ids;
  for (const Worker& worker : workers_) {
    if (worker.phase == Phase::kRunning && !worker.is_dismissed) ids.push_back(worker.id);
  }
  return ids;
}

Actions Policy::on_hosts(const std::vector<HostSlots>& hosts, TimePoint now) {
  Actions out;
  std::map<std::string, int32_t> given;
  for (const HostSlots& host : hosts) given[host.host] += host.slots;
  for (auto& [name, host] : hosts_) {
    if (given.contains(name) || host.slots == 0) continue;
    host.slots = 0;
    out.push_back({.event = "host_removed", .reason = concat("host ", name, " was removed")});
  }
  for (const HostSlots& entry : hosts) {
    const int32_t slots = given[entry.host];
    const auto [found, is_new] = hosts_.try_emplace(entry.host);
    Host& host = found->second;
    if (is_new) host.order = next_order_++;
    if (host.slots == slots) continue;
    const bool was_there = host.slots > 0;
    if (began_at_) {
      out.push_back({.event = "host_changed",
                     .reason = was_there ? concat("host ", entry.host, " has ", slots,
                                                  " slots now, it had ", host.slots)
                                         : concat("host ", entry.host, " with ", slots,
                                                  slots == 1 ? " slot" : " slots", " was added")});
    }
    host.slots = slots;
    host.left.clear();  // whoever changes the list wants the slots to be used
    host.failed_starts.clear();
  }
  int64_t slots = 0;
  for (const auto& [name, host] : hosts_) slots += host.slots;
  if (!has_slots_ && slots >= std::min(limits_.first, limits_.most)) {
    has_slots_ = true;
    waiting_at_.reset();
    if (began_at_) began_at_ = now;  // those that are started now have their time
  }
  settle(now, out);
  return out;
}

Actions Policy::on_message(int32_t id, const elastic::ToLauncher& message, TimePoint now) {
  Actions out;
  if (id < 0 || static_cast<size_t>(id) >= workers_.size()) return out;
  Worker& worker = workers_[static_cast<size_t>(id)];
  if (!is_alive(worker)) return out;
  if (const auto* report = std::get_if<elastic::Report>(&message)) {
    note_report(worker, *report, out);
  } else if (worker.phase != Phase::kWaiting) {
    note_ready(worker, std::get<elastic::Ready>(message), now);
  }
  settle(now, out);
  return out;
}

void Policy::note_report(Worker& worker, const elastic::Report& report, Actions& out) {
  if (report.kind == elastic::kReportCommitted) {
    worker.has_state = are_states_reported_ = true;
    waited_at_.reset();
    worker.has_succeeded = false;  // a program may train several times
    // Before the first commit there is nothing that could be lost.
    if (report.number > 0) was_there_state_ = true;
  }
  if (report.kind == elastic::kReportLeaving) note_leaving(worker, out);
  if (report.kind == elastic::kReportDone) worker.has_succeeded = true;
}

void Policy::note_ready(Worker& worker, const elastic::Ready& ready, TimePoint now) {
  hosts_[worker.host].unreached_at.reset();
  const bool was_running = worker.phase == Phase::kRunning;
  const bool is_unexpected = was_running && !broken_at_ && causes_.empty();
  if (is_unexpected && !ready.why.empty()) {
    causes_.push_back(concat(name_of(worker.id), " came back from init: ", ready.why));
  } else if (is_unexpected && told_changes_ == 0) {
    causes_.push_back(concat(name_of(worker.id), " left epoch ", epoch_));
  }
  // Programs that say nothing of their state got it in the world that they come from.
  if (was_running && ready.why.empty() && !are_states_reported_) {
    worker.has_state = was_there_state_ = true;
  }
  if (was_running && ready.why.empty()) waited_at_.reset();
  if (was_running) note_missed(worker, ready);
  worker.phase = Phase::kWaiting;
  worker.waiting_at = now;
}

void Policy::note_missed(const Worker& worker, const elastic::Ready& ready) {
  if (ready.epoch != epoch_) return;
  for (const int32_t rank : ready.missed) {
    if (rank == kStorePeer) missed_.emplace_back(worker.id, kStorePeer);
    for (const Worker& other : workers_) {
      const bool is_meant = rank >= 0 && other.rank == rank && other.host != worker.host;
      if (is_meant) missed_.emplace_back(worker.id, other.id);
    }
  }
}

Actions Policy::on_end(const WorkerEnd& end, TimePoint now) {
  Actions out;
  if (end.worker < 0 || static_cast<size_t>(end.worker) >= workers_.size()) return out;
  Worker& worker = workers_[static_cast<size_t>(end.worker)];
  if (!is_alive(worker)) return out;
  const bool had_no_part = worker.rank < 0;
  worker.phase = Phase::kGone;
  Host& host = hosts_[worker.host];
  // A newcomer that is asked to leave may not know how to go well.
  const bool is_expected = (worker.is_dismissed || worker.is_leaving) &&
                           (end.is_success || (worker.is_leaving && had_no_part));
  if (is_over_ || ended_at_ || is_expected) {
    settle(now, out);
    return out;
  }
  const std::string what = concat(name_of(end.worker), " ", end.how);
  if (end.is_success) {
    // One that never took part in a running job says nothing about it.
    if (had_no_part && epoch_ > 0) {
      host.left.insert(worker.slot);
    } else {
      has_success_ = true;
    }
  } else {
    if (worker.unwanted.empty()) note_failure(worker, end, now);
    // Of one that we killed the reason is known already.
    if (!worker.is_dismissed) causes_.push_back(what);
    if (limits_.whole_hosts && worker.unwanted.empty() && !has_success_) {
      dismiss_host(worker.host, concat(what, ", and its host goes with it"), out);
    }
  }
  out.push_back(
      {.worker = end.worker, .event = end.is_success ? "finished" : "failed", .reason = what});
  settle(now, out);
  return out;
}

// It has finished its step; the others need not wait until its process is gone.
void Policy::note_leaving(Worker& worker, Actions& out) {
  if (worker.is_leaving) return;
  worker.is_leaving = worker.is_dismissed = true;
  worker.phase = Phase::kWaiting;
  hosts_[worker.host].left.insert(worker.slot);
  const std::string what = concat(name_of(worker.id), " left as it was asked to");
  if (is_member(worker)) causes_.push_back(what);
  out.push_back({.worker = worker.id, .event = "left", .reason = what});
}

void Policy::note_failure(Worker& worker, const WorkerEnd& end, TimePoint now) {
  // Of a host that goes as a whole, the one that failed counts.
  if (!limits_.whole_hosts || !worker.is_dismissed) {
    failed_code_ = end.exit_code == 0 ? 1 : end.exit_code;
  }
  Host& host = hosts_[worker.host];
  if (may_answer_later(host, end, now)) {
    host.cooldown.note_failure(now, {}, 0, true);
    return;
  }
  const auto known = std::count_if(hosts_.begin(), hosts_.end(),
                                   [](const auto& entry) { return entry.second.slots > 0; });
  const double chance = std::uniform_real_distribution<double>(0, 1)(chance_);
  host.cooldown.note_failure(now, limits_.cooldown, chance, known <= 1 && !limits_.whole_hosts);
  if (worker.rank >= 0) {
    host.failed_starts[worker.slot] = 0;
  } else if (epoch_ == 0 || ++host.failed_starts[worker.slot] >= kMostFailedStarts) {
    // A program that cannot even begin would be started again and again.
    host.left.insert(worker.slot);
  }
}

// One that has just appeared, such as a pod, may run before its sshd listens.
bool Policy::may_answer_later(Host& host, const WorkerEnd& end, TimePoint now) const {
  if (end.was_reached || !limits_.may_hosts_change) {
    host.unreached_at.reset();
    return false;
  }
  if (!host.unreached_at) host.unreached_at = now;
  return now - *host.unreached_at < limits_.reach_time;
}

Actions Policy::on_time(TimePoint now) {
  Actions out;
  settle(now, out);
  return out;
}

}  // namespace hvd::launch
