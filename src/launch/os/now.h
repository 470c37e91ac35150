// now.h - the time, for the parts of the launcher that act. What decides takes it as a parameter.
#pragma once

#include "base/clock.h"

namespace hvd::launch {

inline TimePoint now() { return Clock::steady().now(); }

}  // namespace hvd::launch
