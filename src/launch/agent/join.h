// join.h - a host that joins a running job by itself (--join): connects to the launcher, starts an
// agent (agent.h) whenever it asks for one, and leaves with the job. One thread; blocks in poll()
// only, and in the resolver before it has connected.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "launch/link/meeting_place.h"
#include "launch/os/environment_list.h"

namespace hvd::launch {

struct JoinRequest {
  MeetingPlace place;
  std::string key_file;
  int32_t slots = 1;
  std::chrono::seconds timeout{};  // for a launcher that is not there yet
};

// Tells the user something, in a line.
using Say = std::function<void(std::string_view)>;

// What the process exits with: the job's exit code, 0 if it left before (SIGTERM), or an error that
// says why it did not take part, or not to the end. Nothing: the place turned out to be this host,
// which therefore launches; a name may become known late, and a host that starts may get its
// address late, so both are looked at again for as long as nobody answers.
Result<std::optional<int>> run_join(const JoinRequest& request, const EnvironmentList& environment,
                                    const Say& say);

}  // namespace hvd::launch
