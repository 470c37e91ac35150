#include "bootstrap/join_network.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/parse.h"
#include "base/text.h"
#include "base/version.h"
#include "bootstrap/gathering.h"
#include "bootstrap/host_identity.h"
#include "bootstrap/pmi_client.h"
#include "bootstrap/store_place.h"
#include "net/tcp_mesh.h"
#include "store/client.h"
#include "topology/variables.h"

namespace hvd::bootstrap {
namespace {

using topology::text_variable;

// What a rank finds out about itself and its host before it talks to anybody.
struct Self {
  Member member;
  std::vector<net::Interface> interfaces;
  std::vector<net::Address> usable;
  std::string congestion_control;
};

Result<Self> look_at_self(const topology::Topology& topology, const Environment& environment) {
  Self self;
  HVD_TRY_ASSIGN(self.interfaces, net::all_interfaces());
  const auto names = text_variable(environment, "HOROVOD_GLOO_IFACE");
  auto usable =
      net::usable_addresses(self.interfaces, net::parse_interface_names(names.value_or("")));
  if (!usable) {
    return blame(concat("rank ", topology.rank, " (host ", topology.hostname, ")",
                        names ? ": HOROVOD_GLOO_IFACE" : ""),
                 usable.status());
  }
  self.usable = std::move(*usable);
  HVD_TRY_ASSIGN(const auto tls, topology::integer_variable(environment, "HOROVOD_TLS", 0));
  self.congestion_control = text_variable(environment, "HOROVOD_TCP_CONGESTION").value_or("");
  self.member = {.version = version_text(),
                 .rank = topology.rank,
                 .size = topology.size,
                 .local_rank = topology.local_rank,
                 .local_size = topology.local_size,
                 .host = host_identity(topology.hostname),
                 .hostname = topology.hostname,
                 .uses_tls = tls.value_or(0) > 0,
                 .addresses = {}};
  return self;
}

// A scope means nothing on another host.
std::vector<net::Address> without_scopes(std::vector<net::Address> addresses) {
  for (net::Address& address : addresses) address.scope = 0;
  return addresses;
}

Result<Network> meet(Self self, store::Store& store, const net::Key& key, uint64_t epoch,
                     Deadline deadline) {
  HVD_TRY_ASSIGN(net::TcpPort port, net::TcpPort::listen(self.usable));
  self.member.addresses = without_scopes(port.addresses());
  HVD_TRY_ASSIGN(const Roster roster, gather(self.member, store, epoch, deadline));
  Network network;
  HVD_TRY_ASSIGN(network.hosts, make_host_map(roster.members));
  std::vector<net::MeshPeer> peers;
  for (const Member& member : roster.members) {
    peers.push_back({.host = member.hostname, .addresses = member.addresses});
  }
  // A key file may serve many jobs; this makes their connections strangers to each other.
  const net::Key mesh_key = key.derive(
      "horovod mesh", {reinterpret_cast<const uint8_t*>(roster.salt.data()), roster.salt.size()});
  const Nanoseconds longest = net::TcpMeshOptions{}.wait_time;
  const net::TcpMeshOptions options{
      .rank = self.member.rank,
      .epoch = epoch,
      .interfaces = std::move(self.interfaces),
      // Less than init waits for the streams: only the mesh knows why an address does not answer.
      .wait_time = deadline.remaining(longest) / 10 * 9,
      .congestion_control = std::move(self.congestion_control),
      .encryption = self.member.uses_tls ? net::Encryption::kTls : net::Encryption::kNone};
  HVD_TRY_ASSIGN(network.mesh,
                 net::make_tcp_mesh(std::move(port), std::move(peers), mesh_key, options));
  return network;
}

Result<std::unique_ptr<store::ServerThread>> host_store(const StorePlace& place, const Self& self,
                                                        const net::Key& key) {
  auto server = store::Server::listen(addresses_to_bind(place, self.interfaces, self.usable), key);
  if (!server) {
    return blame(concat("rank 0 (host ", self.member.hostname,
                        ") cannot run the rendezvous store that ", place.source, " names"),
                 server.status());
  }
  return store::ServerThread::start(std::move(*server));
}

// The key from the environment, or a fresh one that rank 0 leaves in a store that is trusted.
Result<net::Key> agree_on_key(const topology::Topology& topology, const Environment& environment,
                              store::Store& store, uint64_t epoch, Deadline deadline) {
  HVD_TRY_ASSIGN(const auto given, find_key(environment, deadline));
  if (given) return *given;
  const std::string name = concat("horovod/", epoch, "/key");
  if (topology.rank == 0) {
    HVD_TRY_ASSIGN(const net::Key key, net::Key::random());
    HVD_TRY(store.set(name, {reinterpret_cast<const char*>(key.bytes().data()), net::kKeyBytes},
                      deadline));
    return key;
  }
  HVD_TRY_ASSIGN(std::string bytes, store.get(name, deadline));
  return net::Key::parse(bytes);
}

// Runs the store at `place`, unless this process does already.
Result<std::vector<net::Address>> host_again(const StorePlace& place, const Self& self,
                                             const net::Key& key, Memory& memory) {
  std::optional<HostedStore>& hosted = memory.hosted;
  if (hosted && (hosted->place != place.addresses || !(hosted->key == key))) hosted.reset();
  if (!hosted) {
    HVD_TRY_ASSIGN(auto server, host_store(place, self, key));
    hosted.emplace(HostedStore{place.addresses, key, std::move(server)});
  }
  return hosted->server->addresses();
}

// Through a store at a place that all ranks know.
Result<Network> join_at(const StorePlace& place, Self self, const net::Key& key,
                        const store::ClientOptions& options, Deadline deadline, Memory& memory) {
  std::vector<net::Address> addresses = net::dial_order(place.addresses, self.interfaces);
  if (place.host == StorePlace::Host::kRank0 && options.rank == 0) {
    HVD_TRY_ASSIGN(addresses, host_again(place, self, key, memory));
  }
  store::Client client(std::move(addresses), key, options);
  return meet(std::move(self), client, key, options.epoch, deadline);
}

// Through the store that was made known through PMI, in this init or an earlier one.
Result<Network> join_again(const PmiMeeting& meeting, Self self,
                           const store::ClientOptions& options, Deadline deadline) {
  store::Client client(net::dial_order(meeting.addresses, self.interfaces), meeting.key, options);
  return meet(std::move(self), client, meeting.key, options.epoch, deadline);
}

}  // namespace

Result<Network> join_network(const topology::Topology& topology, const Environment& environment,
                             uint64_t epoch, Deadline deadline, Memory& memory) {
  HVD_TRY_ASSIGN(auto place, named_store_place(environment, deadline));
  HVD_TRY_ASSIGN(const auto key, find_key(environment, deadline));
  const store::ClientOptions options{.epoch = epoch, .rank = topology.rank};
  if (!place && (memory.pmi || has_process_manager(environment))) {
    HVD_TRY_ASSIGN(Self self, look_at_self(topology, environment));
    if (!memory.pmi) {
      HVD_TRY_ASSIGN(memory.pmi,
                     meet_through_pmi(topology, environment, self.usable, key, deadline));
    }
    return join_again(*memory.pmi, std::move(self), options, deadline);
  }
  if (!place) {
    HVD_TRY_ASSIGN(place, launcher_store_place(topology, environment, deadline));
  }
  if (!key) return missing_key(topology, *place);
  HVD_TRY_ASSIGN(Self self, look_at_self(topology, environment));
  return join_at(*place, std::move(self), *key, options, deadline, memory);
}

Result<Network> join_network(const topology::Topology& topology, const Environment& environment,
                             uint64_t epoch, Deadline deadline) {
  Memory memory;
  HVD_TRY_ASSIGN(Network network, join_network(topology, environment, epoch, deadline, memory));
  if (memory.hosted) network.store = std::move(memory.hosted->server);
  if (memory.pmi) network.store = std::move(memory.pmi->server);
  return network;
}

Result<Network> join_network(const topology::Topology& topology, const Environment& environment,
                             store::Store& store, uint64_t epoch, Deadline deadline) {
  HVD_TRY_ASSIGN(const net::Key key, agree_on_key(topology, environment, store, epoch, deadline));
  HVD_TRY_ASSIGN(Self self, look_at_self(topology, environment));
  return meet(std::move(self), store, key, epoch, deadline);
}

}  // namespace hvd::bootstrap
