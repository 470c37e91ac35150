// task.h - a work in execution: a state machine that never blocks, so that several process sets can
// advance side by side, a caller's deadline holds in the middle of an operation, and the death of a
// peer is noticed anywhere.
#pragma once

#include "base/engine_role.h"
#include "collective/work.h"

namespace hvd::collective {

enum class Progress {
  kDone,      // the work is complete on this rank
  kAdvanced,  // call again
  kBlocked,   // its backend says for what
};

class Task {
 public:
  virtual ~Task() = default;
  virtual Progress advance() HVD_REQUIRES(engine_role) = 0;
};

}  // namespace hvd::collective
