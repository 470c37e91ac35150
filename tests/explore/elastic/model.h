// model.h - an elastic job in one thread: the launcher's real policy, the workers' real inbox and
// messages, and a model of what lies between (processes, the meeting of a world, its collectives).
// Whoever owns it decides what happens next. Deterministic.
//
// A collective is entered by each member and completed by each: one that dies after it came lets
// some complete it and others fail, as real ones do.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "elastic/inbox.h"
#include "elastic/message.h"
#include "launch/elastic/policy.h"
#include "tests/explore/elastic/scenario.h"

namespace hvd::explore_elastic {

enum class What {
  kHears,       // a worker reads the next message of the launcher
  kSays,        // the launcher reads the next message of a worker
  kEnds,        // the launcher hears of a worker's end
  kStarts,      // a worker comes as far as init
  kTakesPlace,  // it finds its place, or that it has none
  kMeets,       // it has met all others of its world
  kIsTold,      // it meets no more, because the launcher said so
  kMissed,      // it meets no more, because it could not reach somebody
  kEnters,      // the next collective
  kCompletes,
  kFails,  // it notices that somebody has gone
  kFailsToStart,
  kIsKilled,
  kFreezes,
  kIsAskedToLeave,
  kHostsChange,
  kIsCut,
  kTimePasses,
};

struct Event {
  What what = What::kTimePasses;
  int32_t subject = -1;  // a worker, or a place in a list of the scenario
};
// Misfortunes and time: what a scheduler may leave out.
bool is_from_outside(const Event& event);
std::string to_text(const Event& event);

class Model {
 public:
  explicit Model(const Scenario& scenario);

  std::vector<Event> possible() const;
  void happen(const Event& event);
  bool is_over() const { return end_.has_value(); }
  // All that is left of the newest world is frozen, and nobody waits for it but newcomers: that
  // cannot be told from a long step.
  bool is_excused() const;
  // For whoever sees that nothing happens by itself any more: nobody healthy may be inside of a
  // world then, waiting until time helps.
  void check_rest();
  // What should never be; empty: nothing was.
  const std::string& violation() const { return violation_; }
  const std::vector<std::string>& history() const { return history_; }

 private:
  enum class Life { kStarting, kAsking, kMeeting, kSyncing, kTraining, kEnding, kGone };
  struct Version {
    bool is_there = false;
    int64_t generation = 0, commit = 0;
    auto operator<=>(const Version&) const = default;
  };
  struct Worker {
    std::string host = {};
    Life life = Life::kStarting;
    elastic::Inbox inbox = {};
    std::deque<std::string> in = {}, out = {};
    uint64_t epoch = 0;
    elastic::Assign place = {};
    Version version = {};
    size_t step = 0;  // collective of this world: 0 is the sync
    bool has_entered = false;
    bool is_frozen = false;
    bool wants_to_leave = false;
    int exit_code = 0;
  };
  struct Entry {
    Version version = {};
    bool has_news = false;  // of rank 0
    bool leaves = false;
  };
  struct World {
    std::map<int32_t, int32_t> members = {};  // by rank
    std::set<int32_t> arrived = {}, left = {};
    std::vector<std::map<int32_t, Entry>> steps = {};
  };

  void add_worker_events(int32_t id, std::vector<Event>& out) const;
  void add_outside_events(std::vector<Event>& out) const;
  void add_stage_events(int32_t id, std::vector<Event>& out) const;
  bool is_reachable(const Worker& from, const Worker& to) const;
  bool has_lost_somebody(const Worker& worker) const;
  bool is_complete(const Worker& worker) const;

  void live(int32_t id, What what);
  void take_place(int32_t id);
  void miss(int32_t id);
  void enter(int32_t id);
  void complete(int32_t id);
  void finish_step(int32_t id, const std::map<int32_t, Entry>& entries);
  void come_back(int32_t id, const std::string& why, std::vector<int32_t> missed = {});
  void end_worker(int32_t id, int exit_code);
  void say(int32_t id, const elastic::ToLauncher& message);
  void change_from_outside(const Event& event);

  void carry_out(const launch::Actions& actions);
  void carry_out_one(const launch::Action& action);
  void tell(int32_t id, const elastic::ToWorker& message);
  void check_world(const std::vector<const launch::Action*>& assigned);
  void violate(const std::string& what);

  Scenario scenario_;
  launch::Policy policy_;
  TimePoint now_{};
  std::vector<Worker> workers_;
  std::map<uint64_t, World> worlds_;
  std::map<int32_t, int32_t> last_ranks_;
  size_t next_change_ = 0;
  std::set<std::string> cut_;
  bool was_there_commit_ = false;
  bool is_training_over_ = false;
  std::optional<launch::Action> end_;
  std::string violation_;
  std::vector<std::string> history_;
};

}  // namespace hvd::explore_elastic
