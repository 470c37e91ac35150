// gathering.h - every rank tells the store about itself; rank 0 reads all of it, checks it, and
// leaves the roster, which the others read: two values per rank instead of one per pair. Blocks
// until the deadline; other ranks a little longer, so that they learn from rank 0 who is missing.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/status.h"
#include "bootstrap/roster.h"
#include "store/store.h"

namespace hvd::bootstrap {

// If it fails, it fails with the same reason on every rank that can reach the store.
Result<Roster> gather(const Member& self, store::Store& store, uint64_t epoch, Deadline deadline);

}  // namespace hvd::bootstrap
