// pmi_meeting.h - key and store of a job whose process manager speaks PMI: rank 0 runs the store
// and leaves its addresses, and a fresh key, with the manager. PMI serves once in the life of a
// process, so a later init meets at the same place. Blocks until all ranks have come, or the
// deadline.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/settings.h"
#include "base/status.h"
#include "net/address.h"
#include "net/keys/key.h"
#include "store/server_thread.h"
#include "topology/topology.h"

namespace hvd::bootstrap {

struct PmiMeeting {
  net::Key key;
  std::vector<net::Address> addresses;
  std::unique_ptr<store::ServerThread> server;  // of rank 0
};

// `usable`: where rank 0 may listen. `given`: the key of HOROVOD_KEY_FILE, which then does not
// travel.
Result<PmiMeeting> meet_through_pmi(const topology::Topology& topology,
                                    const Environment& environment,
                                    const std::vector<net::Address>& usable,
                                    const std::optional<net::Key>& given, Deadline deadline);

// "<64 hexadecimal digits or ->/<addresses>", as many addresses as fit into `most` characters.
std::string encode_meeting(const std::optional<net::Key>& key,
                           const std::vector<net::Address>& addresses, size_t most);
struct MeetingText {
  std::optional<net::Key> key;
  std::vector<net::Address> addresses;
};
Result<MeetingText> decode_meeting(std::string_view text);

}  // namespace hvd::bootstrap
