// What a worker does: start, ask, meet, sync, train, come back, end.
#include <algorithm>

#include "base/interrupt.h"
#include "base/text.h"
#include "tests/explore/elastic/model.h"

namespace hvd::explore_elastic {
namespace {

constexpr int32_t kCommitted = 1, kLeaving = 2, kDone = 3;

}  // namespace

bool Model::is_reachable(const Worker& from, const Worker& to) const {
  return from.host == to.host || (!cut_.contains(from.host) && !cut_.contains(to.host));
}

bool Model::has_lost_somebody(const Worker& worker) const {
  const World& world = worlds_.at(worker.epoch);
  return std::any_of(world.members.begin(), world.members.end(), [&](const auto& member) {
    const Worker& peer = workers_[static_cast<size_t>(member.second)];
    return peer.life >= Life::kEnding || peer.is_frozen || world.left.contains(member.second) ||
           !is_reachable(worker, peer);
  });
}

// Everybody came, whatever has become of them since.
bool Model::is_complete(const Worker& worker) const {
  const World& world = worlds_.at(worker.epoch);
  const bool is_meeting = worker.life == Life::kMeeting;
  return std::all_of(world.members.begin(), world.members.end(), [&](const auto& member) {
    const Worker& peer = workers_[static_cast<size_t>(member.second)];
    const bool has_come = is_meeting ? world.arrived.contains(member.second)
                                     : world.steps.size() > worker.step &&
                                           world.steps[worker.step].contains(member.second);
    return has_come && is_reachable(worker, peer);
  });
}

void Model::live(int32_t id, What what) {
  Worker& worker = workers_[static_cast<size_t>(id)];
  switch (what) {
    case What::kHears: {
      const auto message = elastic::decode_to_worker(worker.in.front());
      worker.in.pop_front();
      if (!message) return violate("a worker does not understand a message");
      worker.inbox.take(*message);
      break;
    }
    case What::kStarts:
      come_back(id, "");
      break;
    case What::kTakesPlace:
      take_place(id);
      break;
    case What::kMeets:
      worker.life = Life::kSyncing;
      worker.step = 0;
      worker.has_entered = false;
      break;
    case What::kIsTold:
      come_back(id, worker.inbox.check_unbroken(worker.epoch).message());
      break;
    case What::kMissed:
      miss(id);
      break;
    case What::kEnters:
      enter(id);
      break;
    case What::kCompletes:
      complete(id);
      break;
    default:
      come_back(id, "");  // an error of a collective: back to the last commit
  }
}

void Model::take_place(int32_t id) {
  Worker& worker = workers_[static_cast<size_t>(id)];
  const auto place = worker.inbox.take_place(worker.epoch);
  if (!place) return end_worker(id, 0);
  worker.place = **place;
  worker.epoch = worker.place.epoch;
  worker.life = Life::kMeeting;
  const World& world = worlds_[worker.epoch];
  const auto member = world.members.find(worker.place.rank);
  if (member == world.members.end() || member->second != id ||
      worker.place.size != static_cast<int32_t>(world.members.size())) {
    return violate(
        concat("worker ", id, " takes a place that is not its own in epoch ", worker.epoch));
  }
  worlds_[worker.epoch].arrived.insert(id);
}

void Model::miss(int32_t id) {
  const Worker& worker = workers_[static_cast<size_t>(id)];
  std::vector<int32_t> missed;
  for (const auto& [rank, other] : worlds_[worker.epoch].members) {
    const Worker& peer = workers_[static_cast<size_t>(other)];
    if (!is_reachable(worker, peer) || peer.is_frozen) missed.push_back(rank);
  }
  if (cut_.contains(worker.host)) missed = {kStorePeer};
  come_back(id, "some did not come in time", std::move(missed));
}

void Model::enter(int32_t id) {
  Worker& worker = workers_[static_cast<size_t>(id)];
  World& world = worlds_[worker.epoch];
  if (world.steps.size() <= worker.step) world.steps.resize(worker.step + 1);
  world.steps[worker.step][id] = {
      .version = worker.version,
      .has_news = worker.place.rank == 0 && worker.inbox.news().timestamp_ns != 0,
      .leaves = worker.wants_to_leave};
  worker.has_entered = true;
}

void Model::complete(int32_t id) {
  Worker& worker = workers_[static_cast<size_t>(id)];
  const std::map<int32_t, Entry> entries = worlds_[worker.epoch].steps[worker.step];
  worker.has_entered = false;
  ++worker.step;
  if (worker.life == Life::kTraining) return finish_step(id, entries);
  Version newest;
  for (const auto& [member, entry] : entries) newest = std::max(newest, entry.version);
  if (!newest.is_there && was_there_commit_) {
    return violate(concat("epoch ", worker.epoch, " begins without the state of the training"));
  }
  worker.version = {true, newest.generation + 1, newest.commit};
  worker.life = Life::kTraining;
  say(id, elastic::Report{.kind = kCommitted, .number = newest.commit});
}

void Model::finish_step(int32_t id, const std::map<int32_t, Entry>& entries) {
  Worker& worker = workers_[static_cast<size_t>(id)];
  ++worker.version.commit;
  was_there_commit_ = true;
  say(id, elastic::Report{.kind = kCommitted, .number = worker.version.commit});
  const bool is_interrupted = std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
    return entry.second.has_news || entry.second.leaves;
  });
  if (worker.version.commit >= scenario_.commits) {
    is_training_over_ = true;
    say(id, elastic::Report{.kind = kDone});
    end_worker(id, 0);
  } else if (is_interrupted && entries.at(id).leaves) {
    say(id, elastic::Report{.kind = kLeaving});
    end_worker(id, 0);
  } else if (is_interrupted) {
    come_back(id, "");
  }
}

void Model::come_back(int32_t id, const std::string& why, std::vector<int32_t> missed) {
  Worker& worker = workers_[static_cast<size_t>(id)];
  if (worker.epoch > 0) worlds_[worker.epoch].left.insert(id);
  worker.life = Life::kAsking;
  say(id, elastic::Ready{.epoch = worker.epoch, .why = why, .missed = std::move(missed)});
}

void Model::end_worker(int32_t id, int exit_code) {
  Worker& worker = workers_[static_cast<size_t>(id)];
  if (worker.life >= Life::kEnding) return;
  worker.life = Life::kEnding;
  worker.exit_code = exit_code;
}

void Model::say(int32_t id, const elastic::ToLauncher& message) {
  workers_[static_cast<size_t>(id)].out.push_back(elastic::encode(message));
}

}  // namespace hvd::explore_elastic
