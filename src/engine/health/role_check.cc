#include "engine/health/role_check.h"

#include <sched.h>

namespace hvd::engine {

// A thread that was interrupted right behind setting a bit looks the same, so look often.
uint32_t RoleCheck::look(TimePoint now) {
  constexpr int kLooks = 200;
  constexpr auto kPatience = std::chrono::milliseconds(1500);  // between the 2nd and the 3rd tick
  uint32_t stray = ~0u;
  for (int look = 0; look < kLooks && stray != 0; ++look) {
    uint32_t word = word_.load();
    if (role_.is_held()) word &= ~shm::kRoleBit;
    if (submit_lock_.is_held()) word &= ~shm::kSubmitBit;
    stray &= word;
    if (look % 50 == 49) sched_yield();
  }
  if (stray == 0) {
    stray_since_.reset();
    return 0;
  }
  if (!stray_since_) stray_since_ = now;
  if (now - *stray_since_ < kPatience) return 0;
  word_.fetch_and(~stray);
  return stray;
}

}  // namespace hvd::engine
