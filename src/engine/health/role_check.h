// role_check.h - a bit of the role word that nobody in this process has set would keep everybody
// out for ever: finds it. Thread: hvd-watch.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "engine/operation/role.h"

namespace hvd::engine {

class RoleCheck {
 public:
  RoleCheck(std::atomic<uint32_t>& word, const EngineRole& role, const SubmitLock& submit_lock)
      : word_(word), role_(role), submit_lock_(submit_lock) {}

  // At every tick, however long that is. Stray bits that have been there for some seconds; they are
  // cleared, so that those who wait learn why. 0: none.
  uint32_t look(TimePoint now);

 private:
  std::atomic<uint32_t>& word_;
  const EngineRole& role_;
  const SubmitLock& submit_lock_;
  std::optional<TimePoint> stray_since_ = {};
};

}  // namespace hvd::engine
