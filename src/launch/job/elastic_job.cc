#include "launch/job/elastic_job.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <utility>

#include "base/text.h"
#include "launch/elastic/placement.h"
#include "launch/job/elastic_limits.h"
#include "launch/job/report.h"
#include "launch/os/now.h"

namespace hvd::launch {

ElasticJob::ElasticJob(const Prepared& prepared, FleetStart& start, Terminal& terminal,
                       const Signals& signals, const DescriptorLimit& limit, ElasticLog log)
    : prepared_(prepared),
      start_(start),
      terminal_(terminal),
      policy_(policy_limits(prepared.options, prepared.settings)),
      discovery_(prepared.options, prepared.plan.environment, signals, limit,
                 prepared.settings.discovery_period),
      log_(std::move(log)) {
  const ElasticOptions& elastic = prepared.options.elastic;
  if (!elastic.chaos_kill) return;
  const uint64_t seed = elastic.chaos_seed != 0 ? elastic.chaos_seed : std::random_device()();
  terminal.err().append(concat("horovodrun: chaos: a worker is killed about every ",
                               describe_span(*elastic.chaos_kill), " (seed=", seed, ")\n"));
  chaos_.emplace(*elastic.chaos_kill, seed, now());
}

void ElasticJob::begin() { carry_out(policy_.on_hosts(prepared_.found.hosts, now())); }

void ElasticJob::on_message(int32_t worker, std::string_view bytes) {
  const auto message = elastic::decode_to_launcher(bytes);
  if (!message) {
    terminal_.err().append(
        concat("horovodrun: ", policy_.name_of(worker), ": ", message.status().message(), "\n"));
    return;
  }
  carry_out(policy_.on_message(worker, *message, now()));
}

void ElasticJob::on_exit(int32_t worker, const ExitStatus& status) {
  if (!status.is_success()) costs_.note_failure(now(), worker, policy_.running());
  carry_out(policy_.on_end(
      {.worker = worker,
       .is_success = status.is_success(),
       .exit_code = exit_code_of(status),
       .how = status.signal != 0 ? concat("was ", describe(status)) : describe(status)},
      now()));
}

void ElasticJob::on_lost(int32_t worker, const std::string& why, bool was_reached) {
  costs_.note_failure(now(), worker, policy_.running());
  carry_out(policy_.on_end({.worker = worker,
                            .is_success = false,
                            .exit_code = 1,
                            .how = concat("was lost: ", why),
                            .was_reached = was_reached},
                           now()));
}

void ElasticJob::watch(PollSet& polls) {
  discovery_.watch(polls);
  const TimePoint wake = policy_.wake_at(now());
  if (wake != TimePoint::max()) polls.wake_by(wake);
  if (chaos_) polls.wake_by(chaos_->next_at());
  for (RemoteHost& host : start_.fleet().remote) {
    if (host.state() == RemoteHost::State::kConnecting) {
      polls.wake_by(host.heard_at() + prepared_.plan.start_timeout);
    }
  }
}

void ElasticJob::on_time() {
  discovery_.on_time(now());
  look_after_hosts();
  take_hosts();
  take_joined();
  stir();
  carry_out(policy_.on_time(now()));
  while (!not_started_.empty()) {
    const WorkerEnd lost = not_started_.back();
    not_started_.pop_back();
    carry_out(policy_.on_end(lost, now()));
  }
}

// Hosts come up one by one; nobody waits for all of them.
void ElasticJob::look_after_hosts() {
  for (RemoteHost& host : start_.fleet().remote) {
    if (host.state() == RemoteHost::State::kReady) host.go();
    const bool is_late = host.state() == RemoteHost::State::kConnecting && !host.has_greeted() &&
                         now() - host.heard_at() >= prepared_.plan.start_timeout;
    if (is_late) {
      host.give_up(concat("no answer within ", prepared_.plan.start_timeout.count(),
                          " s (--start-timeout)"));
    }
  }
}

void ElasticJob::take_hosts() {
  const auto news = discovery_.take_news();
  if (!news) return;
  if (*news) {
    carry_out(policy_.on_hosts(**news, now()));
    return;
  }
  // The hosts that were known stay; the next answer may be better.
  say({.event = "discovery_failed", .reason = news->status().message()});
}

// Hosts that joined or left by themselves, besides the one where the job was launched.
void ElasticJob::take_joined() {
  if (!start_.fleet().joined) return;
  while (const auto news = start_.fleet().joined->take_news()) {
    std::vector<HostSlots> hosts = prepared_.found.hosts;
    hosts.insert(hosts.end(), news->begin(), news->end());
    carry_out(policy_.on_hosts(hosts, now()));
  }
}

void ElasticJob::stir() {
  if (!chaos_ || end_) return;
  const auto victim = chaos_->pick(now(), policy_.running());
  if (!victim) return;
  say({.worker = *victim,
       .event = "chaos",
       .reason = concat("chaos: ", policy_.name_of(*victim), " is killed")});
  kill(*victim);
}

void ElasticJob::carry_out(const Actions& actions) {
  start_workers(actions);
  for (const Action& action : actions) carry_out_one(action);
}

void ElasticJob::carry_out_one(const Action& action) {
  if (!action.event.empty()) say(action);
  switch (action.kind) {
    case ActionKind::kAssign:
      costs_.note_world(now(), action.place.rank == 0 ? action.epoch : 0, action.reason);
      tell(action.worker, action.place);
      break;
    case ActionKind::kRemove:
      tell(action.worker, elastic::Removed{action.reason});
      break;
    case ActionKind::kBreak:
      costs_.note_break(now());
      tell(action.worker, elastic::Broken{action.epoch, action.reason});
      break;
    case ActionKind::kNews:
      tell(action.worker, elastic::News{action.changes == 0 ? 0 : wall_clock_ns(), action.changes});
      break;
    case ActionKind::kKill:
      kill(action.worker);
      break;
    case ActionKind::kEnd:
      end_ = {.exit_code = action.exit_code, .reason = action.reason};
      break;
    case ActionKind::kStart:
    case ActionKind::kSay:
      break;
  }
}

// Those of one host together, so that it needs one connection for them.
void ElasticJob::start_workers(const Actions& actions) {
  std::vector<Candidate> all;
  std::map<int32_t, const Action*> by_worker;
  for (const Action& action : actions) {
    if (action.kind != ActionKind::kStart) continue;
    all.push_back({.worker = action.worker, .host = action.host});
    by_worker[action.worker] = &action;
  }
  std::map<std::string, std::vector<NewWorker>> by_host;
  for (const Placed& placed : place_workers(all, 1)) {
    const Action& action = *by_worker[placed.worker];
    NewWorker worker{.id = placed.worker, .place = {}};
    // Before its first init nobody knows where it will stand; the first ones are told a guess that
    // mostly comes true.
    const bool is_first = policy_.epoch() == 0;
    worker.place.rank = is_first ? placed.place.rank : placed.worker;
    worker.place.size = is_first ? placed.place.size : placed.worker + 1;
    worker.place.local_rank = is_first ? placed.place.local_rank : action.slot;
    worker.place.local_size = is_first ? placed.place.local_size : action.slot + 1;
    worker.place.cross_rank = is_first ? placed.place.cross_rank : 0;
    worker.place.cross_size = is_first ? placed.place.cross_size : 1;
    worker.place.hostname = action.host;
    by_host[action.host].push_back(std::move(worker));
  }
  // Numbers ascend in the fleet, whichever host they are on.
  std::vector<std::pair<std::string, std::vector<NewWorker>>> order(by_host.begin(), by_host.end());
  for (auto& [host, workers] : order) {
    std::sort(workers.begin(), workers.end(),
              [](const NewWorker& a, const NewWorker& b) { return a.id < b.id; });
  }
  std::sort(order.begin(), order.end(),
            [](const auto& a, const auto& b) { return a.second.front().id < b.second.front().id; });
  for (const auto& [host, workers] : order) {
    const Status started = start_.add_workers(host, workers);
    if (started.is_ok()) continue;
    for (const NewWorker& worker : workers) {
      not_started_.push_back({.worker = worker.id,
                              .is_success = false,
                              .exit_code = 1,
                              .how = concat("could not be started: ", started.message())});
    }
  }
}

void ElasticJob::tell(int32_t worker, const elastic::ToWorker& message) {
  Fleet& fleet = start_.fleet();
  RankState& state = fleet.ranks[static_cast<size_t>(worker)];
  std::string bytes = elastic::encode(message);
  if (state.remote != nullptr) {
    state.remote->send_message(worker, bytes);
  } else if (fleet.local) {
    fleet.local->send_message(worker, std::move(bytes));
  }
}

void ElasticJob::kill(int32_t worker) {
  Fleet& fleet = start_.fleet();
  RankState& state = fleet.ranks[static_cast<size_t>(worker)];
  if (state.remote != nullptr) {
    state.remote->kill_one(worker);
  } else if (fleet.local) {
    fleet.local->kill_one(worker);
  }
}

void ElasticJob::say(const Action& action) {
  log_.write({.event = action.event,
              .epoch = policy_.epoch(),
              .worker = action.worker,
              .reason = action.reason});
  // The last line of the job says how it ended, and a new epoch why somebody had to go.
  const bool is_for_log_alone = action.kind == ActionKind::kEnd ||
                                action.kind == ActionKind::kRemove || action.event == "finished";
  if (is_for_log_alone) return;
  terminal_.err().start_line();
  terminal_.err().append(concat("horovodrun: ", action.reason, "\n"));
}

}  // namespace hvd::launch
