// affinity.h - HOROVOD_THREAD_AFFINITY: pins the calling (background) thread. Failures are only
// logged, as the original did.
#pragma once

#include <vector>

namespace hvd::engine {

// `cores` has an entry per local rank; empty: nothing is pinned.
void pin_to_core(const std::vector<int>& cores, int local_rank, int local_size);

}  // namespace hvd::engine
