// tcp_end.h - this rank's end of a network over TCP: the interfaces and addresses of its host, what
// it says about itself, and the mesh once all have said so. Asks the kernel only; never blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/settings.h"
#include "base/status.h"
#include "bootstrap/roster.h"
#include "net/interfaces.h"
#include "net/keys/key.h"
#include "net/tcp_mesh.h"
#include "topology/topology.h"

namespace hvd::bootstrap {

// What a rank finds out about itself and its host before it talks to anybody.
struct TcpEnd {
  Member member;  // without addresses until it listens
  std::vector<net::Interface> interfaces;
  std::vector<net::Address> usable;
  std::string congestion_control;
  std::chrono::milliseconds lost_host_time = net::TcpMeshOptions{}.control_user_timeout;
};

// HOROVOD_TLS.
Result<net::Protection> protection_of(const Environment& environment);

Result<TcpEnd> look_at_tcp_end(const topology::Topology& topology, const Environment& environment);

// Which of our addresses a library that can use one alone should listen at: one in a network that
// we share with the other hosts, if there is such a one. Numeric, without a port. Pure.
std::string address_for_others(const TcpEnd& end, const Roster& roster);

// Warns, on rank 0 for all, when HOROVOD_TLS=0 leaves the job open to whoever is on the network.
void say_what_is_open(const Member& self);

// Listens on all usable addresses and writes them into the member.
Result<net::TcpPort> listen_at(TcpEnd& end);

// The key of the mesh is derived from `key` and the roster's salt: a key file may serve many jobs,
// whose connections are strangers to each other. Streams have to come before the deadline.
Result<std::unique_ptr<net::Mesh>> open_mesh(TcpEnd end, net::TcpPort port, const Roster& roster,
                                             const net::Key& key, uint64_t epoch,
                                             Deadline deadline);

}  // namespace hvd::bootstrap
