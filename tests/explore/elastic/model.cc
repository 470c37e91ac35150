// What may happen, and the outside world.
#include "tests/explore/elastic/model.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace hvd::explore_elastic {
namespace {

constexpr const char* kNames[] = {
    "hears",        "says",           "ends",       "starts",  "takes-place",
    "meets",        "is-told",        "missed",     "enters",  "completes",
    "fails",        "fails-to-start", "is-killed",  "freezes", "is-asked-to-leave",
    "hosts-change", "is-cut",         "time-passes"};
static_assert(std::size(kNames) == static_cast<size_t>(What::kTimePasses) + 1);

launch::PolicyLimits limits_of(const Scenario& scenario) {
  launch::PolicyLimits limits;
  limits.least = scenario.least;
  limits.first = scenario.first;
  limits.most = scenario.most;
  limits.timeout = std::chrono::seconds(30);
  limits.ready_time = std::chrono::seconds(5);
  limits.cooldown.range = {{1, 8}};
  limits.may_hosts_change = !scenario.changes.empty();
  limits.seed = 1;
  return limits;
}

}  // namespace

bool is_from_outside(const Event& event) {
  return static_cast<int>(event.what) >= static_cast<int>(What::kFailsToStart);
}

std::string to_text(const Event& event) {
  const std::string name = kNames[static_cast<size_t>(event.what)];
  return event.subject < 0 ? name : concat(event.subject, " ", name);
}

Model::Model(const Scenario& scenario) : scenario_(scenario), policy_(limits_of(scenario)) {
  carry_out(policy_.on_hosts(scenario_.hosts, now_));
}

std::vector<Event> Model::possible() const {
  std::vector<Event> out;
  if (is_over() || !violation_.empty()) return out;
  for (size_t id = 0; id < workers_.size(); ++id) {
    add_worker_events(static_cast<int32_t>(id), out);
  }
  add_outside_events(out);
  return out;
}

void Model::add_worker_events(int32_t id, std::vector<Event>& out) const {
  const Worker& worker = workers_[static_cast<size_t>(id)];
  if (!worker.out.empty()) out.push_back({What::kSays, id});
  if (worker.life == Life::kEnding && worker.out.empty()) out.push_back({What::kEnds, id});
  if (worker.life >= Life::kEnding || worker.is_frozen) return;
  if (!worker.in.empty()) out.push_back({What::kHears, id});
  add_stage_events(id, out);
}

void Model::add_stage_events(int32_t id, std::vector<Event>& out) const {
  const Worker& worker = workers_[static_cast<size_t>(id)];
  switch (worker.life) {
    case Life::kStarting:
      out.push_back({What::kStarts, id});
      break;
    case Life::kAsking: {
      elastic::Inbox inbox = worker.inbox;
      const auto place = inbox.take_place(worker.epoch);
      if (!place || place->has_value()) out.push_back({What::kTakesPlace, id});
      break;
    }
    case Life::kMeeting:
      if (is_complete(worker)) out.push_back({What::kMeets, id});
      if (!worker.inbox.check_unbroken(worker.epoch)) out.push_back({What::kIsTold, id});
      for (const auto& [rank, other] : worlds_.at(worker.epoch).members) {
        const Worker& peer = workers_[static_cast<size_t>(other)];
        if (is_reachable(worker, peer) && !peer.is_frozen) continue;
        out.push_back({What::kMissed, id});
        break;
      }
      break;
    case Life::kSyncing:
    case Life::kTraining:
      if (!worker.has_entered) out.push_back({What::kEnters, id});
      if (worker.has_entered && is_complete(worker)) out.push_back({What::kCompletes, id});
      if (worker.has_entered && has_lost_somebody(worker)) out.push_back({What::kFails, id});
      break;
    case Life::kEnding:
    case Life::kGone:
      break;
  }
}

void Model::add_outside_events(std::vector<Event>& out) const {
  for (size_t i = 0; i < workers_.size(); ++i) {
    const Worker& worker = workers_[i];
    const auto id = static_cast<int32_t>(i);
    if (worker.life >= Life::kEnding) continue;
    if (scenario_.bad_starts > 0 && worker.life == Life::kStarting && !worker.is_frozen) {
      out.push_back({What::kFailsToStart, id});
    }
    if (scenario_.kills > 0) out.push_back({What::kIsKilled, id});
    if (scenario_.freezes > 0 && !worker.is_frozen) out.push_back({What::kFreezes, id});
    if (scenario_.leaves > 0 && worker.life > Life::kStarting && !worker.wants_to_leave) {
      out.push_back({What::kIsAskedToLeave, id});
    }
  }
  if (next_change_ < scenario_.changes.size()) out.push_back({What::kHostsChange, -1});
  for (size_t i = 0; i < scenario_.cuts.size(); ++i) {
    if (!cut_.contains(scenario_.cuts[i])) out.push_back({What::kIsCut, static_cast<int32_t>(i)});
  }
  if (policy_.wake_at(now_) != TimePoint::max()) out.push_back({What::kTimePasses, -1});
}

void Model::happen(const Event& event) {
  history_.push_back(to_text(event));
  if (is_from_outside(event)) {
    change_from_outside(event);
    return;
  }
  const int32_t id = event.subject;
  Worker& worker = workers_[static_cast<size_t>(id)];
  if (event.what == What::kSays) {
    const auto message = elastic::decode_to_launcher(worker.out.front());
    worker.out.pop_front();
    if (!message) {
      violate("the launcher does not understand a message");
    } else {
      carry_out(policy_.on_message(id, *message, now_));
    }
  } else if (event.what == What::kEnds) {
    worker.life = Life::kGone;
    carry_out(policy_.on_end({.worker = id,
                              .is_success = worker.exit_code == 0,
                              .exit_code = worker.exit_code,
                              .how = concat("ended with ", worker.exit_code)},
                             now_));
  } else {
    live(id, event.what);
  }
}

void Model::change_from_outside(const Event& event) {
  const int32_t id = event.subject;
  switch (event.what) {
    case What::kFailsToStart:
      --scenario_.bad_starts;
      end_worker(id, 1);
      break;
    case What::kIsKilled:
      --scenario_.kills;
      end_worker(id, 137);
      break;
    case What::kFreezes:
      --scenario_.freezes;
      workers_[static_cast<size_t>(id)].is_frozen = true;
      break;
    case What::kIsAskedToLeave:
      --scenario_.leaves;
      workers_[static_cast<size_t>(id)].wants_to_leave = true;
      break;
    case What::kHostsChange:
      carry_out(policy_.on_hosts(scenario_.changes[next_change_++], now_));
      break;
    case What::kIsCut:
      cut_.insert(scenario_.cuts[static_cast<size_t>(id)]);
      break;
    default:
      now_ = policy_.wake_at(now_);
      carry_out(policy_.on_time(now_));
  }
}

bool Model::is_excused() const {
  return std::all_of(workers_.begin(), workers_.end(), [](const Worker& one) {
    return one.is_frozen || one.life == Life::kGone ||
           (one.life == Life::kAsking && one.epoch == 0);
  });
}

void Model::check_rest() {
  for (size_t id = 0; id < workers_.size(); ++id) {
    const Worker& worker = workers_[id];
    const bool is_inside = worker.life > Life::kAsking && worker.life < Life::kEnding;
    if (!is_inside || worker.is_frozen) continue;
    violate(concat("worker ", id, " waits in epoch ", worker.epoch, " for time to pass"));
  }
}

void Model::violate(const std::string& what) {
  if (violation_.empty()) violation_ = what;
}

}  // namespace hvd::explore_elastic
