// flush.h - the last output of the launcher. One thread; may block.
#pragma once

#include "base/clock.h"
#include "launch/os/signals.h"
#include "launch/output/console.h"

namespace hvd::launch {

// Until all is written, a signal says stop, or the deadline. Without a deadline only a reader that
// is there but does not read can hold us, as it holds every program. `signals` may be null.
void flush_all(Terminal& terminal, const Signals* signals, Deadline deadline);

}  // namespace hvd::launch
