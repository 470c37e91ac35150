// leave_signal.h - SIGTERM from anybody but the launcher asks a worker of an elastic job to leave:
// it finishes its step, hands over and goes. From the launcher it ends the process, as ever.
// Process-wide, since signals are.
#pragma once

#include <sys/types.h>

namespace hvd::elastic {

// Once per process; not where the program has a handler of its own, which then decides. A second
// SIGTERM ends the process.
void take_leave_signal(pid_t launcher);

// Any thread; never blocks.
bool has_leave_signal_come();

// Readable from then on; -1 where nobody takes the signal. For waits; never read from it.
int leave_signal_fd();

}  // namespace hvd::elastic
