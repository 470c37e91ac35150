// join_network.h - how the ranks of a job on several hosts find each other: key and store from the
// environment, everybody's addresses, who runs on which host. Blocks until all ranks have come or
// the deadline has passed; if it fails, it fails on every rank that came, with the same reason.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/settings.h"
#include "base/status.h"
#include "bootstrap/key_agreement.h"
#include "bootstrap/pmi_meeting.h"
#include "bootstrap/store_place.h"
#include "net/keys/key.h"
#include "net/mesh.h"
#include "store/server_thread.h"
#include "store/store.h"
#include "topology/hosts.h"
#include "topology/topology.h"

namespace hvd::bootstrap {

enum class KeySource {
  kGiven,   // by horovodrun, a key file or a process manager
  kAgreed,  // through a store that anybody who reaches it may change
};

struct Network {
  topology::HostMap hosts;
  // Where rank 0 runs the store for a job without our launcher and has no Memory; null elsewhere.
  // Others may still read from it when rank 0 is done, so it lives as long as the network.
  std::unique_ptr<store::ServerThread> store;
  std::unique_ptr<net::Mesh> mesh;
  // Where Gloo carries the data: the address of this host to listen at; else empty.
  std::string gloo_address{};
  KeySource key_source = KeySource::kGiven;
  std::optional<net::Key> host_secret{};  // of the job, for what its ranks do inside a host
};

// A store that rank 0 runs at a place that all ranks know.
struct HostedStore {
  std::vector<net::Address> place;
  net::Key key;
  std::unique_ptr<store::ServerThread> server;
};

// What a process keeps from one init to the next. Ranks that are quicker with the next init come to
// a store while rank 0 is still leaving the job before, so a store stays.
struct Memory {
  std::optional<PmiMeeting> pmi{};
  std::optional<HostedStore> hosted{};
};

// The store is, in this order: HOROVOD_STORE_ADDRESSES (set by horovodrun); one that rank 0 runs at
// HOROVOD_RENDEZVOUS_ADDR:HOROVOD_RENDEZVOUS_PORT, HOROVOD_GLOO_RENDEZVOUS_ADDR:_PORT or
// MASTER_ADDR:HOROVOD_STORE_PORT; one that rank 0 makes known through PMI; one at the first host
// that the launcher names. The key comes from HOROVOD_KEY_FD or HOROVOD_KEY_FILE; through PMI a
// fresh one can travel. Without them: PRECONDITION_ERROR that says how to give them.
// `interrupt` ends the wait for the others early; null: nothing does.
Result<Network> join_network(const topology::Topology& topology, const Environment& environment,
                             uint64_t epoch, Deadline deadline, Memory& memory,
                             const Interrupt* interrupt = nullptr);
// For a process that joins once.
Result<Network> join_network(const topology::Topology& topology, const Environment& environment,
                             uint64_t epoch, Deadline deadline);

// The same through a store that the caller brings (torch, MPI). If the environment names no key,
// the ranks agree on a fresh one through that store (key_agreement.h), and clean up with `forget`.
Result<Network> join_network(const topology::Topology& topology, const Environment& environment,
                             store::Store& store, uint64_t epoch, Deadline deadline,
                             const Forget& forget = nullptr);

}  // namespace hvd::bootstrap
