// submissions.h - what callers' threads do with operations: submit them, run them in one call, wait
// for them, and what happens when one is complete. Submitting and polling never block; waiting does
// so in Driver, up to its deadline.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/engine_role.h"
#include "base/status.h"
#include "engine/drive/driver.h"
#include "engine/drive/tuning.h"
#include "engine/operation/handle_table.h"
#include "engine/operation/prepared.h"
#include "engine/operation/role.h"

namespace hvd::engine {

// What submissions go through; all of it outlives them.
struct SubmissionsView {
  const Surroundings& surroundings;
  EngineRole& role;
  SubmitLock& submit_lock;
  Pending& pending;
  LocalWaiters& waiters;
  Failure& failure;
  ProcessSets& sets;
  Lookout& lookout;
  const Timelines& timelines;
  EngineTuning& tuning;
  Driver& driver;
};

class Submissions {
 public:
  explicit Submissions(const SubmissionsView& view);

  // See Engine, which has the same functions.
  Result<uint64_t> submit(int32_t set, const Submission& submission);
  Status run(int32_t set, const Submission& submission, Deadline deadline);
  Result<std::unique_ptr<Prepared>> prepare(int32_t set, const Submission& submission);
  Result<uint64_t> submit(Prepared& prepared);
  Status run(Prepared& prepared, Deadline deadline);

  Status poll(uint64_t handle);
  Status wait(uint64_t handle, Deadline deadline);
  Status wait_many(const uint64_t* handles, size_t count, Deadline deadline);
  Status release(uint64_t handle);
  Result<Operation*> completed_operation(uint64_t handle);
  static const Output& keep_output(Operation& op, size_t index);
  Result<int32_t> join(Deadline deadline);

  // From the channel: whoever waits is told, the callback runs.
  void completed(Operation& op) HVD_REQUIRES(engine_role) {
    view_.pending.note_finished();
    view_.tuning.note_completed(op);
    if (op.handle == 0) {  // a one-call form
      op.state.store(static_cast<uint32_t>(OperationState::kDone), std::memory_order_release);
      return;
    }
    completed_with_handle(op);
  }

 private:
  template <typename Admit>
  Status run_here(Channel& channel, const Admit& admit, Deadline deadline)
      HVD_RELEASE(engine_role, submit_side);
  Status end_run(Operation& op) HVD_RELEASE(engine_role);
  Status run_slowly(int32_t set, const Submission& submission, Deadline deadline);
  template <typename Admit>
  Result<uint64_t> submit_here(Channel& channel, const Admit& admit);
  void completed_with_handle(Operation& op) HVD_REQUIRES(engine_role);
  static Status admit_prepared(Channel& channel, Prepared& prepared, Operation& op)
      HVD_REQUIRES(submit_side);
  Status check_prepared(const Prepared& prepared) const;
  // In one call, by the thread that submits.
  bool may_run_here(const Submission& s) const {
    return s.progress != ProgressPolicy::kBackground && s.on_complete == nullptr && s.device < 0 &&
           !view_.failure.is_broken() && !view_.failure.is_closing();
  }

  const SubmissionsView view_;
  RoleAndSubmit both_;
  HandleTable handles_;
  // The one-call forms use one operation, which is in no table.
  std::unique_ptr<Operation> sync_operation_ HVD_GUARDED_BY(engine_role);
  // One-call forms that timed out; they stay until shutdown or completion.
  std::vector<std::unique_ptr<Operation>> late_operations_ HVD_GUARDED_BY(engine_role);
};

}  // namespace hvd::engine
