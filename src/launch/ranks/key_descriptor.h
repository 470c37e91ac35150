// key_descriptor.h - hands the job's key to a worker: a memory file that it inherits. The key never
// stands in an argument, in the environment or in a file that has a name. One thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/status.h"

namespace hvd::launch {

inline constexpr char kKeyVariable[] = "HOROVOD_KEY_FD";

// One per worker, since readers share the position in it. Close-on-exec until the worker's fork.
Result<UniqueFd> make_key_descriptor(std::string_view key);

}  // namespace hvd::launch
