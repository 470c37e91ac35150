// bring_up.h - waits until every other host is ready, or says why one is not. All at once, in one
// loop. One thread; blocks in poll() until the deadline at most.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "base/clock.h"
#include "launch/link/remote_host.h"
#include "launch/os/signals.h"
#include "launch/output/console.h"

namespace hvd::launch {

struct BringUpFailure {
  std::string text;
  int exit_code;
};

struct BringUpEnd {
  std::optional<int> signal = {};  // horovodrun was told to end
  std::optional<BringUpFailure> failure = {};
};

enum class Progress { kSilent, kShown };

BringUpEnd bring_up(std::deque<RemoteHost>& hosts, const Signals& signals, Terminal& terminal,
                    std::chrono::seconds start_timeout, Progress progress);

}  // namespace hvd::launch
