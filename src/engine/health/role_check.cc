#include "engine/health/role_check.h"

#include <sched.h>

namespace hvd::engine {

// A thread that was interrupted right behind setting a bit looks the same, so look often.
uint32_t RoleCheck::look() {
  constexpr int kLooks = 200;
  constexpr int kTicks = 3;
  uint32_t stray = ~0u;
  for (int look = 0; look < kLooks && stray != 0; ++look) {
    uint32_t word = word_.load();
    if (role_.is_held()) word &= ~shm::kRoleBit;
    if (submit_lock_.is_held()) word &= ~shm::kSubmitBit;
    stray &= word;
    if (look % 50 == 49) sched_yield();
  }
  stray_ticks_ = stray == 0 ? 0 : stray_ticks_ + 1;
  if (stray_ticks_ < kTicks) return 0;
  word_.fetch_and(~stray);
  return stray;
}

}  // namespace hvd::engine
