// policy.h - who decides in an elastic job: told what happened and when, it answers what is to be
// done and why. Pure: never reads a clock, a socket or the environment, and chance is a seed.
// One thread.
//
// A worker is a process; it has a number that never changes. A world ("epoch") is formed among
// workers that stand at the door (kWaiting) alone, so a worker that is slow to start, or never
// does, keeps nobody from training:
//
//   kStarting --Ready--> kWaiting --Assign--> kRunning --Ready--> kWaiting ... --> kGone
//
// A world that loses a member, or one of whose members comes back, is broken: the others are waited
// for (and killed when they keep one that is back waiting for too long), then the next world is
// formed if enough are left.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "elastic/message.h"
#include "launch/elastic/action.h"
#include "launch/elastic/cooldown.h"
#include "launch/elastic/network_blame.h"
#include "launch/elastic/placement.h"
#include "launch/options/launch_settings.h"
#include "launch/plan/hosts.h"

namespace hvd::launch {

struct PolicyLimits {
  int32_t least = 1;                                  // --min-np
  int32_t first = 1;                                  // -np: slots that are needed to start
  int32_t most = INT32_MAX;                           // --max-np
  std::optional<int32_t> resets = {};                 // --reset-limit
  Nanoseconds timeout = kDefaultElasticTimeout;       // --elastic-timeout
  Nanoseconds ready_time = std::chrono::seconds(60);  // for members that others wait for
  Nanoseconds reach_time = std::chrono::seconds(30);  // for a new host until it can be reached
  CooldownRules cooldown = {};
  bool may_hosts_change = false;  // a script, or a file that somebody may edit
  // As the original has it: a worker that fails takes its host with it, and the running ones pause
  // for workers that have only been started.
  bool whole_hosts = false;
  uint64_t seed = 0;
};

struct WorkerEnd {
  int32_t worker = 0;
  bool is_success = false;
  int exit_code = 0;
  std::string how = {};     // "was killed by signal 9 (Killed)"
  bool was_reached = true;  // its host answered before
};

class Policy {
 public:
  explicit Policy(const PolicyLimits& limits) : limits_(limits), chance_(limits.seed) {}

  // The first call starts the workers.
  Actions on_hosts(const std::vector<HostSlots>& hosts, TimePoint now);
  Actions on_message(int32_t worker, const elastic::ToLauncher& message, TimePoint now);
  Actions on_end(const WorkerEnd& end, TimePoint now);
  Actions on_time(TimePoint now);

  // When on_time has something to say; never: TimePoint::max().
  TimePoint wake_at(TimePoint now) const;
  bool is_over() const { return is_over_; }
  uint64_t epoch() const { return epoch_; }
  int32_t resets() const { return epoch_ > 0 ? static_cast<int32_t>(epoch_) - 1 : 0; }
  // Whom chaos may hit.
  std::vector<int32_t> running() const;
  // "rank 2 on hostB", or "worker 5 on hostB" for one that has no rank yet.
  std::string name_of(int32_t worker) const;

 private:
  enum class Phase { kStarting, kWaiting, kRunning, kGone };
  struct Worker {
    int32_t id = 0;
    std::string host = {};
    int32_t slot = 0;
    Phase phase = Phase::kStarting;
    TimePoint waiting_at = {};  // kWaiting: since then
    int32_t rank = -1;          // in the newest world that it was part of
    bool is_leaving = false;    // it said so
    bool is_dismissed = false;  // told to go, or killed by us: its end is no news
    bool has_state = false;     // of the training
    bool has_succeeded = false;
    bool is_overdue = false;    // a world was formed without it while it was starting
    std::string unwanted = {};  // why it has to go; empty: it may stay
  };
  struct Host {
    int32_t slots = 0;  // 0: not in the list any more
    int order = 0;
    Cooldown cooldown = {};
    std::set<int32_t> left = {};  // slots whose worker left on purpose, or never starts
    std::map<int32_t, int> failed_starts = {};   // by slot, in a row
    std::optional<TimePoint> unreached_at = {};  // the first of some tries in a row
  };

  bool is_alive(const Worker& worker) const { return worker.phase != Phase::kGone; }
  bool is_member(const Worker& worker) const { return epoch_ > 0 && worker.rank >= 0; }
  // It can be rank 0 of the next world. A newcomer whose first world fell apart before it received
  // the state can not, if anybody ever had it.
  bool is_heir(const Worker& worker) const {
    return worker.rank >= 0 && (worker.has_state || !was_there_state_);
  }
  bool has_running() const;
  int count(Phase phase) const;
  int count_wanted() const;
  std::vector<Candidate> candidates() const;
  std::optional<std::pair<std::string, int32_t>> free_slot(TimePoint now) const;
  bool may_more_come(TimePoint now) const;
  bool has_every_start_failed() const;
  uint32_t pending_changes() const;

  void note_report(Worker& worker, const elastic::Report& report, Actions& out);
  void note_ready(Worker& worker, const elastic::Ready& ready, TimePoint now);
  void note_missed(const Worker& worker, const elastic::Ready& ready);
  void note_leaving(Worker& worker, Actions& out);
  void note_failure(Worker& worker, const WorkerEnd& end, TimePoint now);
  bool may_answer_later(Host& host, const WorkerEnd& end, TimePoint now) const;
  void settle(TimePoint now, Actions& out);
  void mark_unwanted(Actions& out);
  void note_break(TimePoint now, Actions& out);
  void dismiss_unwanted(Actions& out);
  std::optional<TimePoint> due_back_at() const;
  std::optional<TimePoint> awaited_at() const;
  bool is_start_awaited(const Worker& worker) const;
  Nanoseconds time_to_begin() const;
  void kill_late(TimePoint now, Actions& out);
  void blame_network(TimePoint now, Actions& out);
  std::vector<Standing> standings() const;
  void give_up_host(const std::string& name, const std::string& why, TimePoint now, Actions& out);
  void dismiss_host(const std::string& name, const std::string& why, Actions& out);
  void try_to_end(TimePoint now, Actions& out);
  void try_to_form(TimePoint now, Actions& out);
  void wait_for_slots(TimePoint now, Actions& out);
  void wait_for_more(TimePoint now, int32_t have, Actions& out);
  void form(std::vector<Candidate> candidates, TimePoint now, Actions& out);
  void start_workers(TimePoint now, Actions& out);
  void tell_news(Actions& out);
  void end_well(TimePoint now, Actions& out);
  void end_badly(std::string reason, Actions& out);
  std::string causes_text() const;
  std::string cooling_text(TimePoint now) const;

  PolicyLimits limits_;
  std::mt19937_64 chance_;
  std::map<std::string, Host> hosts_;
  int next_order_ = 0;
  std::vector<Worker> workers_;  // by number
  uint64_t epoch_ = 0;
  std::optional<TimePoint> began_at_;    // the first workers were started, or waited for
  bool has_slots_ = false;               // enough to start with, at some time
  std::optional<TimePoint> broken_at_;   // the newest world
  std::optional<TimePoint> waiting_at_;  // too few since then
  // The same before the newest world was formed, until that has shown to be one.
  std::optional<TimePoint> waited_at_;
  std::optional<TimePoint> ended_at_;  // well; whoever remains has a moment
  bool has_success_ = false;
  bool is_over_ = false;
  int failed_code_ = 1;  // what the job exits with if it fails
  uint32_t told_changes_ = 0;
  bool are_states_reported_ = false;  // by anybody, at any time
  bool was_there_state_ = false;      // somebody had it, at some time
  // Members of the newest world that lacked each other; -1: the place where they meet.
  std::vector<std::pair<int32_t, int32_t>> missed_;
  std::vector<std::string> causes_;  // what happened since the newest world was formed
};

}  // namespace hvd::launch
