// operation_rows.h - what people see of a channel's operations: entries in the ring of last
// operations, rows in the timeline. Submitting, agreeing and ending each leave a mark.
#pragma once

#include <atomic>
#include <string>

#include "base/cpu.h"
#include "base/engine_role.h"
#include "engine/channel/membership.h"
#include "engine/operation/flight.h"
#include "engine/operation/operation.h"
#include "trace/timeline.h"

namespace hvd::engine {

class OperationRows {
 public:
  OperationRows(const Membership& members, Flight& flight,
                const std::atomic<trace::Timeline*>& timeline)
      : members_(members), flight_(flight), timeline_(timeline) {}

  void submitted(Operation& op) HVD_REQUIRES(submit_side);

  // All ranks have submitted it: when each had, as its ring of last operations says.
  void ready(const Operation& op) HVD_REQUIRES(engine_role);
  // `activity`: of whoever runs it; see Backend::activity().
  void started(const Operation& op, std::string_view activity) HVD_REQUIRES(engine_role);
  // The activity before this one, if there was one, is over.
  void went_on(const Operation& op, std::string_view activity) HVD_REQUIRES(engine_role);
  void ended(const Operation& op) HVD_REQUIRES(engine_role);

 private:
  const Membership& members_;
  Flight& flight_;
  const std::atomic<trace::Timeline*>& timeline_;  // null: off
};

}  // namespace hvd::engine
