// data_plane.h - everything that moves the data of one channel's large works: its backends, who
// runs which work, and what the first one waits for. Works are run in the order they are added.
// Never blocks.
#pragma once

#include <poll.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "collective/backends/registry.h"
#include "collective/executor.h"
#include "collective/select.h"

namespace hvd::collective {

class DataPlane {
 public:
  explicit DataPlane(std::vector<std::unique_ptr<Backend>> backends);

  // Whether works of this kind in host memory have a backend.
  bool can_run(WorkKind kind) const;
  // Gives the work to the backend that select() names. PRECONDITION_ERROR: there is none; the text
  // names the work and what the backends lack.
  Status add(Work& work) HVD_REQUIRES(engine_role);
  // Of the backend that such a work would go to; see Backend::activity().
  std::string_view activity(const Work& work) const;
  // Where such a work would go, and why, for people.
  std::string explain(const Work& work) const;

  bool is_idle() const { return executor_.is_idle(); }
  Progress advance(std::vector<Work*>& done) HVD_REQUIRES(engine_role) {
    return executor_.advance(done);
  }
  void abandon() HVD_REQUIRES(engine_role) { executor_.abandon(); }

  // Works that are over for the engine, of all backends; see Backend.
  bool look_after_streams() HVD_REQUIRES(engine_role);
  void abort_streams() HVD_REQUIRES(engine_role);

  // Of the work that is first. Not while idle.
  const Backend& current() const { return *executor_.current(); }
  void add_descriptors(std::vector<pollfd>& out) const;
  // The first failure of a backend after which its works no longer move.
  const Status& status() const;

 private:
  std::vector<std::unique_ptr<Backend>> backends_;
  std::vector<Candidate> candidates_;
  Executor executor_;
  const Status ok_;
};

}  // namespace hvd::collective
