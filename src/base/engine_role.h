// engine_role.h - the two rights that the threads of a rank share, as names for the compiler:
// HVD_REQUIRES(engine_role) marks what only the thread that steps the engine may call,
// HVD_REQUIRES(submit_side) what only a holder of the submit lock may. The words behind them are in
// engine/operation/role.h; a thread has those of one engine at a time, so one name does for all
// engines of a process. Nothing here exists at run time.
#pragma once

#include "base/thread_annotations.h"

namespace hvd {

class HVD_CAPABILITY("engine role") EngineRoleName {};
inline constexpr EngineRoleName engine_role{};

class HVD_CAPABILITY("submit lock") SubmitSideName {};
inline constexpr SubmitSideName submit_side{};

// Where one thread alone knows the engine, or there is a data plane without one (tests, bench).
inline void alone_with_the_engine() HVD_ASSERT_CAPABILITY(engine_role) {}

}  // namespace hvd
