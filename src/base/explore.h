// explore.h - what the test that explores schedules (tests/explore) needs from the core. It
// compiles the sources with HVD_EXPLORE: rings are then so small that a short program goes around
// them, and at each point another rank or thread may be let in. In what users get all of this is
// nothing.
#pragma once

namespace hvd {

namespace explore {
struct Probe;  // looks into classes that name it as a friend
}

// The point between two agreed operations of a channel: where a step could as well have ended.
inline constexpr const char* kNextOperation = "next operation";

#ifdef HVD_EXPLORE
inline constexpr bool kIsExplored = true;
// Between two accesses to words that others share; `what` comes next. Defined by the test.
void schedule_point(const char* what);
#else
inline constexpr bool kIsExplored = false;
inline void schedule_point(const char*) {}
#endif

}  // namespace hvd
