// meeting_place.h - where the hosts of a job meet that start the same command (--join HOST:PORT):
// the host of that name launches, the others join it. Asks the resolver, which may block for
// seconds. One thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "net/address.h"
#include "net/listener.h"

namespace hvd::launch {

struct MeetingPlace {
  std::string host;
  uint16_t port = 0;
};

// "gpu1:4711", "10.0.0.1:4711", "[fd00::1]:4711".
Result<MeetingPlace> parse_meeting_place(std::string_view text);

// For whoever joins: again until the name is known, or the deadline. `on_unknown` is called once
// if it is not known at once.
Result<std::vector<net::Address>> resolve(const MeetingPlace& place, Deadline deadline,
                                          const std::function<void()>& on_unknown);

// Whether a place with these addresses is this machine: the first one counts, as for other names.
bool is_this_host(const std::vector<net::Address>& addresses);

// For whoever launches: the addresses of the named interfaces, or of all but loopback; loopback
// alone if the place is there.
Result<std::vector<net::Address>> listening_addresses(const MeetingPlace& place,
                                                      const std::vector<std::string>& interfaces);

// On all of them, but for those that the machine cannot use: a family that its kernel lacks, an
// IPv6 address that is not yet, or not any more, its own. Of two launchers with the same port, the
// second must not have the addresses that the first left: any other failure is one of the whole.
Result<net::Listener> listen_on_usable(const std::vector<net::Address>& addresses);

}  // namespace hvd::launch
