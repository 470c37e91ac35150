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
#include "net/keys/key.h"
#include "topology/topology.h"

namespace hvd::bootstrap {

struct StorePlace {
  enum class Host { kLauncher, kRank0 };

  Host host = Host::kLauncher;
  std::string source;  // the variable that names it
  std::vector<net::Address> addresses;
};

// Whether the environment names a store at all, well or badly.
bool names_store(const Environment& environment);

// What somebody named on purpose: see join_network.h for the variables. None: nullopt.
Result<std::optional<StorePlace>> named_store_place(const Environment& environment,
                                                    Deadline deadline);

// What follows from the launcher: rank 0's host, as far as it is known. Otherwise a
// PRECONDITION_ERROR that says how to start such a job.
Result<StorePlace> launcher_store_place(const topology::Topology& topology,
                                        const Environment& environment, Deadline deadline);

// There is a place, but no key.
Status missing_key(const topology::Topology& topology, const StorePlace& place);

// From HOROVOD_KEY_FD or HOROVOD_KEY_FILE.
Result<std::optional<net::Key>> find_key(const Environment& environment, Deadline deadline);

// For a job on one host, which needs no key but hides its names with one: from HOROVOD_KEY_FILE
// alone, since programs between launcher and rank may have closed a descriptor. nullopt: there is
// none, or it is not usable.
std::optional<net::Key> find_host_secret(const Environment& environment);

// Where rank 0 listens for `place`: those of its addresses that are really its own, or if a gateway
// stands between (a service of Kubernetes) all usable ones with that port.
std::vector<net::Address> addresses_to_bind(const StorePlace& place,
                                            std::span<const net::Interface> interfaces,
                                            std::span<const net::Address> usable);

}  // namespace hvd::bootstrap
