#include "bootstrap/join_network.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/log.h"
#include "base/parse.h"
#include "base/text.h"
#include "bootstrap/gathering.h"
#include "bootstrap/interrupted_store.h"
#include "bootstrap/process_manager.h"
#include "bootstrap/store_place.h"
#include "bootstrap/tcp_end.h"
#include "store/client.h"

namespace hvd::bootstrap {
namespace {

constexpr int kPauseBetweenLooksMs = 50;

Result<Network> meet(TcpEnd self, store::Store& store, const net::Key& key, uint64_t epoch,
                     Deadline deadline, const Interrupt* interrupt = nullptr) {
  say_what_is_open(self.member);
  HVD_TRY_ASSIGN(net::TcpPort port, listen_at(self));
  HVD_TRY_ASSIGN(const Roster roster, gather(self.member, store, key, epoch, deadline, interrupt));
  Network network;
  network.host_secret = key.derive("horovod host", {});
  HVD_TRY_ASSIGN(network.hosts, make_host_map(roster.members));
  HVD_TRY_ASSIGN(const gloo::Decision decision, decide_on_gloo(roster.members));
  if (decision.uses_gloo) network.gloo_address = address_for_others(self, roster);
  if (!decision.note.empty() && self.member.rank == 0) HVD_LOG(kWarning, decision.note);
  HVD_TRY_ASSIGN(network.mesh,
                 open_mesh(std::move(self), std::move(port), roster, key, epoch, deadline));
  return network;
}

bool are_loopback(std::span<const net::Address> addresses) {
  return std::all_of(addresses.begin(), addresses.end(),
                     [](const net::Address& one) { return one.is_loopback(); });
}

// A host whose link is down has no address but those of loopback, and others would look for it
// there for as long as they wait. In an elastic job the link may come back meanwhile.
Result<TcpEnd> await_tcp_end(const topology::Topology& topology, const Environment& environment,
                             const StorePlace& place, Deadline deadline,
                             const Interrupt* interrupt) {
  while (true) {
    Result<TcpEnd> end = look_at_tcp_end(topology, environment);
    const bool is_linked =
        end.is_ok() && (!are_loopback(end->usable) || are_loopback(place.addresses));
    const bool is_mistake = !end && end.status().code() == StatusCode::kInvalidArgument;
    if (is_linked || is_mistake || interrupt == nullptr || deadline.passed()) return end;
    HVD_TRY(interrupt->look());
    pollfd news{interrupt->fd, POLLIN, 0};
    ::poll(&news, 1, kPauseBetweenLooksMs);
  }
}

Result<std::unique_ptr<store::ServerThread>> host_store(const StorePlace& place, const TcpEnd& self,
                                                        const net::Key& key) {
  auto server = store::Server::listen(addresses_to_bind(place, self.interfaces, self.usable), key);
  if (!server) {
    return blame(concat("rank 0 (host ", self.member.hostname,
                        ") cannot run the rendezvous store that ", place.source, " names"),
                 server.status());
  }
  return store::ServerThread::start(std::move(*server));
}

// Runs the store at `place`, unless this process does already.
Result<std::vector<net::Address>> host_again(const StorePlace& place, const TcpEnd& self,
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
Result<Network> join_at(const StorePlace& place, TcpEnd self, const net::Key& key,
                        const store::ClientOptions& options, Deadline deadline, Memory& memory,
                        const Interrupt* interrupt) {
  std::vector<net::Address> addresses = net::dial_order(place.addresses, self.interfaces);
  if (place.host == StorePlace::Host::kRank0 && options.rank == 0) {
    HVD_TRY_ASSIGN(addresses, host_again(place, self, key, memory));
  }
  store::Client client(std::move(addresses), key, options);
  if (interrupt == nullptr) return meet(std::move(self), client, key, options.epoch, deadline);
  InterruptedStore store(client, *interrupt);
  return meet(std::move(self), store, key, options.epoch, deadline, interrupt);
}

// Through the store that was made known through PMI, in this init or an earlier one.
Result<Network> join_again(const PmiMeeting& meeting, TcpEnd self,
                           const store::ClientOptions& options, Deadline deadline) {
  store::Client client(net::dial_order(meeting.addresses, self.interfaces), meeting.key, options);
  return meet(std::move(self), client, meeting.key, options.epoch, deadline);
}

}  // namespace

Result<Network> join_network(const topology::Topology& topology, const Environment& environment,
                             uint64_t epoch, Deadline deadline, Memory& memory,
                             const Interrupt* interrupt) {
  HVD_TRY_ASSIGN(auto place, named_store_place(environment, deadline));
  HVD_TRY_ASSIGN(const auto key, find_key(environment, deadline));
  const store::ClientOptions options{.epoch = epoch, .rank = topology.rank};
  if (!place && (memory.pmi || has_process_manager(environment))) {
    HVD_TRY_ASSIGN(TcpEnd self, look_at_tcp_end(topology, environment));
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
  HVD_TRY_ASSIGN(TcpEnd self, await_tcp_end(topology, environment, *place, deadline, interrupt));
  return join_at(*place, std::move(self), *key, options, deadline, memory, interrupt);
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
                             store::Store& store, uint64_t epoch, Deadline deadline,
                             const Forget& forget) {
  HVD_TRY_ASSIGN(const auto given, find_key(environment, deadline));
  HVD_TRY_ASSIGN(TcpEnd self, look_at_tcp_end(topology, environment));
  KeyAgreement agreement(store, {.rank = topology.rank,
                                 .size = topology.size,
                                 .epoch = epoch,
                                 .hostname = topology.hostname});
  HVD_TRY_ASSIGN(const net::Key key, agreement.agree(given, deadline));
  HVD_TRY_ASSIGN(Network network, meet(std::move(self), store, key, epoch, deadline));
  agreement.clean_up(forget);
  network.key_source = given ? KeySource::kGiven : KeySource::kAgreed;
  return network;
}

}  // namespace hvd::bootstrap
