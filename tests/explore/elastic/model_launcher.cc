// Carries out what the policy decides, and checks it.
#include <algorithm>

#include "base/text.h"
#include "tests/explore/elastic/model.h"

namespace hvd::explore_elastic {

using launch::Action;
using launch::ActionKind;

void Model::carry_out(const launch::Actions& actions) {
  std::vector<const Action*> assigned;
  for (const Action& action : actions) {
    if (is_over()) return violate("the launcher acts after the end");
    const bool needs_reason = action.kind != ActionKind::kNews;
    if (needs_reason && action.reason.empty()) violate("a decision without a reason");
    if (action.kind == ActionKind::kAssign) assigned.push_back(&action);
    carry_out_one(action);
  }
  if (!assigned.empty()) check_world(assigned);
}

void Model::carry_out_one(const Action& action) {
  switch (action.kind) {
    case ActionKind::kStart:
      workers_.push_back({.host = action.host});
      if (action.worker + 1 != static_cast<int32_t>(workers_.size())) violate("a wrong number");
      break;
    case ActionKind::kAssign:
      tell(action.worker, action.place);
      break;
    case ActionKind::kRemove:
      tell(action.worker, elastic::Removed{action.reason});
      break;
    case ActionKind::kBreak:
      tell(action.worker, elastic::Broken{action.epoch, action.reason});
      break;
    case ActionKind::kNews:
      tell(action.worker,
           elastic::News{action.changes == 0 ? 0 : now_.time_since_epoch().count() + 1,
                         action.changes});
      break;
    case ActionKind::kKill:
      workers_[static_cast<size_t>(action.worker)].is_frozen = false;
      end_worker(action.worker, 137);
      break;
    case ActionKind::kEnd:
      end_ = action;
      if (action.exit_code == 0 && !is_training_over_)
        violate("success before the training is over");
      break;
    case ActionKind::kSay:
      break;
  }
}

void Model::tell(int32_t id, const elastic::ToWorker& message) {
  workers_[static_cast<size_t>(id)].in.push_back(elastic::encode(message));
}

void Model::check_world(const std::vector<const Action*>& assigned) {
  const uint64_t epoch = assigned.front()->place.epoch;
  if (worlds_.contains(epoch)) return violate(concat("epoch ", epoch, " is formed twice"));
  World& world = worlds_[epoch];
  std::map<std::string, int32_t> last;  // by host: the rank that its last survivor had
  const auto has_state = [this](int32_t id) {
    return workers_[static_cast<size_t>(id)].version.is_there;
  };
  for (const Action* action : assigned) {
    const Worker& worker = workers_[static_cast<size_t>(action->worker)];
    const elastic::Assign& place = action->place;
    if (place.epoch != epoch || place.size != static_cast<int32_t>(assigned.size()) ||
        !world.members.emplace(place.rank, action->worker).second) {
      return violate(concat("epoch ", epoch, " has members of different worlds"));
    }
    if (place.rank == 0 && was_there_commit_ && !has_state(action->worker)) {
      return violate(concat("rank 0 of epoch ", epoch, " has no state"));
    }
    const bool is_at_the_door = worker.life == Life::kAsking || worker.life >= Life::kEnding;
    if (!is_at_the_door) return violate(concat("worker ", action->worker, " did not ask"));
    const auto before = last_ranks_.find(action->worker);
    if (before == last_ranks_.end() || !has_state(action->worker)) continue;
    const auto [known, is_first] = last.try_emplace(worker.host, before->second);
    if (!is_first && known->second > before->second) return violate("survivors changed places");
    known->second = before->second;
  }
  const auto size = static_cast<int32_t>(assigned.size());
  if (size < scenario_.least || size > scenario_.most) violate(concat("a world of ", size));
  last_ranks_.clear();
  for (const auto& [rank, id] : world.members) last_ranks_[id] = rank;
}

}  // namespace hvd::explore_elastic
