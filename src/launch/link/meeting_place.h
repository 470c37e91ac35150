// meeting_place.h - where the hosts of a job meet that start the same command (--join HOST:PORT):
// the host of that name launches, the others join it. Asks the resolver, which may block for
// seconds. One thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "net/address.h"

namespace hvd::launch {

struct MeetingPlace {
  std::string host;
  uint16_t port = 0;
};

// "gpu1:4711", "10.0.0.1:4711", "[fd00::1]:4711".
Result<MeetingPlace> parse_meeting_place(std::string_view text);

// For whoever joins: again until the name is known, or the deadline.
Result<std::vector<net::Address>> resolve(const MeetingPlace& place, Deadline deadline);

// For whoever launches: the addresses of the named interfaces, or of all but loopback; loopback
// alone if the place is there.
Result<std::vector<net::Address>> listening_addresses(const MeetingPlace& place,
                                                      const std::vector<std::string>& interfaces);

}  // namespace hvd::launch
