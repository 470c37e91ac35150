// A host whose workers live, but whose network does not carry the training.
#include <algorithm>
#include <map>

#include "base/interrupt.h"
#include "base/text.h"
#include "launch/elastic/policy.h"

namespace hvd::launch {

std::vector<Standing> Policy::standings() const {
  std::map<std::string, Standing> hosts;
  for (const Worker& worker : workers_) {
    if (!is_alive(worker) || worker.rank < 0) continue;
    const auto [entry, is_new] =
        hosts.try_emplace(worker.host, Standing{.host = worker.host, .first_rank = worker.rank});
    Standing& host = entry->second;
    host.first_rank = std::min(host.first_rank, worker.rank);
    host.has_state = host.has_state || is_heir(worker);
  }
  std::vector<Standing> list;
  for (auto& [name, host] : hosts) list.push_back(std::move(host));
  return list;
}

// When all members are back or gone. One that has died explains by itself why it was not reached;
// otherwise the same world would be formed, and would fail, again and again.
void Policy::blame_network(TimePoint now, Actions& out) {
  if (missed_.empty() || has_running() || has_success_) return;
  const auto is_there = [this](int32_t id) {
    const Worker& worker = workers_[static_cast<size_t>(id)];
    return is_alive(worker) && !worker.is_dismissed;
  };
  std::vector<Unreached> complaints;
  std::string first;
  for (const auto& [from, to] : std::exchange(missed_, {})) {
    if (!is_there(from) || (to != kStorePeer && !is_there(to))) continue;
    const std::string whom = to == kStorePeer ? "the launcher" : name_of(to);
    if (complaints.empty()) first = concat(name_of(from), " did not reach ", whom);
    complaints.push_back({.from = workers_[static_cast<size_t>(from)].host,
                          .to = to == kStorePeer ? "" : workers_[static_cast<size_t>(to)].host});
  }
  const auto name = host_to_blame(complaints, standings());
  if (!name) return;
  give_up_host(*name,
               concat("the network of host ", *name, " does not carry the training: ", first), now,
               out);
}

void Policy::give_up_host(const std::string& name, const std::string& why, TimePoint now,
                          Actions& out) {
  // A world that never met was none: too few are there since before it. A host that comes back from
  // its cool-down again and again does not keep a job from its end.
  if (!waiting_at_) waiting_at_ = waited_at_;
  const double chance = std::uniform_real_distribution<double>(0, 1)(chance_);
  hosts_[name].cooldown.note_failure(now, limits_.cooldown, chance, false);
  causes_.push_back(why);
  out.push_back({.event = "unreachable", .reason = concat(why, cooling_text(now))});
  dismiss_host(name, why, out);
}

void Policy::dismiss_host(const std::string& name, const std::string& why, Actions& out) {
  for (Worker& worker : workers_) {
    if (!is_alive(worker) || worker.host != name || worker.is_dismissed) continue;
    worker.is_dismissed = true;
    out.push_back(
        {.kind = worker.phase == Phase::kWaiting ? ActionKind::kRemove : ActionKind::kKill,
         .worker = worker.id,
         .event = "removed",
         .reason = why});
  }
}

}  // namespace hvd::launch
