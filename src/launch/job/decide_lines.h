// decide_lines.h - what the driver of a cluster engine and `horovodrun --decide` say to each other:
// lines of words in, lines of JSON out. Pure; any thread.
//
//   hosts NAME:SLOTS ...              all there are now; none: there is no host
//   message WORKER HEX                what a worker said, as elastic/message.h packs it
//   end WORKER success|failure CODE HOW...
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "elastic/message.h"
#include "launch/elastic/action.h"
#include "launch/elastic/policy.h"
#include "launch/plan/hosts.h"

namespace hvd::launch {

// Longer ones are refused: no driver has so many hosts.
inline constexpr size_t kMaxLineBytes = size_t{16} << 20;

struct WorkerMessage {
  int32_t worker = 0;
  elastic::ToLauncher message = {};
};

using DecideEvent = std::variant<std::vector<HostSlots>, WorkerMessage, WorkerEnd>;

// Without its end of line. A failure says what was expected.
Result<DecideEvent> parse_event(std::string_view line);

// One object per line. An action with an event is said first: {"do": "say", ...}.
std::string action_lines(const Action& action, uint64_t epoch, int64_t time_ns);
std::string store_line(const std::string& addresses);

}  // namespace hvd::launch
