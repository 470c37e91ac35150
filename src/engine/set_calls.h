// set_calls.h - callers' side of process sets: each call asks for a change and waits, driving the
// engine, until the ranks it concerns have agreed (ProcessSets) or come (MetSets).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "engine/drive/driver.h"
#include "engine/sets/met_sets.h"
#include "engine/submissions.h"

namespace hvd::engine {

// The name of barriers in the tables; no tensor of a user can have it by accident.
inline constexpr std::string_view kBarrierName = "<barrier>";

struct AddedSet {
  int32_t id;
  bool is_new;  // false: a set of these ranks was there already, on all ranks alike
};

class SetCalls {
 public:
  SetCalls(const Surroundings& surroundings, Failure& failure, ProcessSets& sets, MetSets& met_sets,
           Driver& driver, Submissions& submissions)
      : surroundings_(surroundings),
        failure_(failure),
        sets_(sets),
        met_sets_(met_sets),
        driver_(driver),
        submissions_(submissions) {}

  // See Engine, which has the same functions.
  Status barrier(int32_t set, Deadline deadline);
  Result<AddedSet> add(std::vector<int32_t> ranks);
  Result<bool> remove(int32_t id);
  Result<int32_t> meet(std::string_view key, std::vector<int32_t> ranks, Deadline deadline);
  Status leave(int32_t id);

  // Sets that init was given: all ranks must have been given the same.
  Status add_static(const std::vector<std::vector<int32_t>>& sets);

 private:
  Status agree_on_static(const std::vector<std::vector<int32_t>>& sets);
  Status add_static_set(std::vector<int32_t> ranks);
  Status check_meeting(std::string_view key, std::vector<int32_t>& ranks) const;
  Status wait_for(const std::shared_ptr<SetChange>& change, Deadline deadline);
  Status give_up(const std::shared_ptr<SetChange>& change);
  Result<int32_t> enter(const SetChange& change, Deadline deadline);
  void wake_role_holder() const { surroundings_.job->wake(surroundings_.job->rank()); }

  const Surroundings& surroundings_;
  Failure& failure_;
  ProcessSets& sets_;
  MetSets& met_sets_;
  Driver& driver_;
  Submissions& submissions_;
};

}  // namespace hvd::engine
