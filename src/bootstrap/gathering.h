// gathering.h - every rank tells the store about itself; rank 0 reads all of it, checks it, and
// leaves the roster, which the others read: two values per rank instead of one per pair. Blocks
// until the deadline; other ranks a little longer, so that they learn from rank 0 who is missing.
// All of it is signed with the key of the job, and each rank finds its own random number in the
// roster: whoever runs the store, or stands between it and a rank, can neither write a roster nor
// bring an old one.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/status.h"
#include "bootstrap/roster.h"
#include "net/keys/key.h"
#include "store/store.h"

namespace hvd::bootstrap {

// If it fails, it fails with the same reason on every rank that can reach the store.
// `interrupt` hears who did not come; null: nobody wants to know.
Result<Roster> gather(Member self, store::Store& store, const net::Key& key, uint64_t epoch,
                      Deadline deadline, const Interrupt* interrupt = nullptr);

}  // namespace hvd::bootstrap
