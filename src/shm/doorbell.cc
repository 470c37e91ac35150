#include "shm/doorbell.h"

namespace hvd::shm {

void Doorbell::wake_for_flag(const std::atomic<uint32_t>& word, uint32_t value) {
  for (int rank = 0; rank < job_.size(); ++rank) {
    if (rank == job_.rank() || job_.block(rank).park.load(std::memory_order_seq_cst) == 0) continue;
    const Want want = unpack_want(job_.block(rank).want.load(std::memory_order_relaxed));
    const bool wanted =
        want.kind == WantKind::kAny || (want.kind == WantKind::kFlag &&
                                        want.where == place_of(word) && reached(value, want.index));
    if (wanted && job_.wake(rank)) wakes_sent_.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace hvd::shm
