// store_place.h - which store and key the environment names. May ask a name server, and then blocks
// until the deadline at most.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/settings.h"
#include "base/status.h"
#include "net/address.h"
#include "net/interfaces.h"
#include "net/key.h"

namespace hvd::bootstrap {

struct StorePlace {
  enum class Host { kLauncher, kRank0 };

  Host host = Host::kLauncher;
  std::string source;  // the variable that names it
  std::vector<net::Address> addresses;
};

// See join_network.h for the variables. None of them: PRECONDITION_ERROR that says how to start.
Result<StorePlace> find_store_place(const Environment& environment, Deadline deadline);

// From HOROVOD_KEY_FD or HOROVOD_KEY_FILE.
Result<std::optional<net::Key>> find_key(const Environment& environment, Deadline deadline);

// Where rank 0 listens for `place`: those of its addresses that are really its own, or if a gateway
// stands between (a service of Kubernetes) all usable ones with that port.
std::vector<net::Address> addresses_to_bind(const StorePlace& place,
                                            std::span<const net::Interface> interfaces,
                                            std::span<const net::Address> usable);

}  // namespace hvd::bootstrap
