// backend.h - the waist of the data plane: one way of moving the data of a channel's works, and
// what the engine asks of it. A backend is a folder beside this file with a table of what it can
// run (capability.h) and one line in backends/registry.cc; select.h chooses among them.
//
// All members of a channel give the same works to the same backends in the same order: what decides
// about a route is agreed, never local. Nothing blocks.
#pragma once

#include <poll.h>

#include <deque>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "collective/capability.h"
#include "collective/task.h"
#include "shm/job_layout.h"

namespace hvd::collective {

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;
  // The same on all members, and for the life of the channel.
  virtual const Capabilities& capabilities() const = 0;

  // Begins the name of its activity in the timeline: "SHM" makes SHM_ALLREDUCE. Empty: works have
  // several, and say so by Work::on_activity.
  virtual std::string_view activity() const { return "SHM"; }

  // Advances what was begun, and takes works whose `backend` this is off the front of `queue`.
  // Finished works are appended to `done`, in order. kDone: nothing of its own is left, neither
  // here nor in front.
  virtual Progress advance(std::deque<Work*>& queue, std::vector<Work*>& done)
      HVD_REQUIRES(engine_role) = 0;
  // Gives up what was begun: no memory of a work is touched any more.
  virtual void abandon() HVD_REQUIRES(engine_role) = 0;

  // ---- Works that were reported before streams have run them ----
  // Looks how far they are; what went wrong with them becomes the status. True: some are left.
  virtual bool look_after_streams() HVD_REQUIRES(engine_role) { return false; }
  // Their peers are gone: whoever waits for the streams waits no longer.
  virtual void abort_streams() HVD_REQUIRES(engine_role) {}

  // ---- What a blocked work waits for ----
  // News in shared memory that may help it. kAny: whatever happens on this host.
  virtual shm::Want want() const = 0;
  // The member of this host it waits for, as a place among the members here.
  virtual int awaited_here() const = 0;
  // Members of other hosts it waits for.
  virtual std::vector<int> awaited_elsewhere() const = 0;
  // Whether members of other hosts take part at all: those drive themselves.
  virtual bool spans_hosts() const = 0;
  // Descriptors to poll beside `want`.
  virtual void add_descriptors(std::vector<pollfd>& out) = 0;

  // How many looks into memory one look at its works takes: whoever spins for them looks so many
  // times less often before it sleeps.
  virtual int look_cost() const { return 1; }

  // Whether it waits for something that wakes nobody: then it is asked again every millisecond.
  virtual bool must_poll() const { return false; }

  // OK, or the failure after which nothing moves any more. Names the peer.
  virtual const Status& status() const = 0;
};

}  // namespace hvd::collective
