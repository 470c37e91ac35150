#include "capi/callers.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hvd::capi {
namespace {

// Gives the slot of a thread back when the thread ends.
struct SlotLease {
  CallerSlot* slot = nullptr;
  ~SlotLease() {
    if (slot != nullptr) slot->in_use.store(false, std::memory_order_release);
  }
};
thread_local SlotLease lease;

long membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }

}  // namespace

__attribute__((tls_model("initial-exec"))) constinit thread_local CallerSlot* Callers::own_slot_ =
    nullptr;

Callers::Callers() : has_membarrier_(membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0) {}

CallerSlot& Callers::add_slot() {
  CallerSlot* slot = first_.load(std::memory_order_acquire);
  for (; slot != nullptr; slot = slot->next) {
    bool free = false;
    if (slot->in_use.compare_exchange_strong(free, true)) break;
  }
  if (slot == nullptr) {
    slot = new CallerSlot();  // NOLINT: kept in the list for ever
    slot->in_use.store(true, std::memory_order_relaxed);
    slot->next = first_.load(std::memory_order_relaxed);
    while (!first_.compare_exchange_weak(slot->next, slot, std::memory_order_acq_rel)) {
    }
  }
  lease.slot = slot;
  own_slot_ = slot;
  return *slot;
}

void Callers::wait_for_all() {
  if (has_membarrier_) membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  for (CallerSlot* slot = first_.load(std::memory_order_acquire); slot != nullptr;
       slot = slot->next) {
    if (slot == own_slot_) continue;
    while (slot->depth.load(std::memory_order_seq_cst) != 0)
      sched_yield();  // they only copy a status out
  }
}

void Callers::forget_all() {
  for (CallerSlot* slot = first_.load(std::memory_order_acquire); slot != nullptr;
       slot = slot->next) {
    if (slot != own_slot_) slot->depth.store(0, std::memory_order_relaxed);
  }
}

}  // namespace hvd::capi
