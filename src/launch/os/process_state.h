// process_state.h - what the kernel knows about another process. Reads /proc; never blocks. Any
// thread.
#pragma once

#include <sys/types.h>

#include <string_view>

namespace hvd::launch {

// Whether the process is on its way out (exiting, dumping core, a zombie). False if that cannot be
// known.
bool is_dying(pid_t pid);

// The same from the text of /proc/<pid>/stat.
bool is_dying_stat(std::string_view stat);

}  // namespace hvd::launch
