#include "mpi/join.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "base/version.h"
#include "bootstrap/gathering.h"
#include "bootstrap/host_identity.h"
#include "bootstrap/key_agreement.h"
#include "bootstrap/store_place.h"
#include "bootstrap/tcp_end.h"
#include "mpi/explain.h"
#include "mpi/mpi_mesh.h"
#include "mpi/mpi_store.h"
#include "mpi/placement.h"
#include "mpi/tcp_beside.h"
#include "topology/variables.h"

namespace hvd::mpi {
namespace {

std::string hostname_of(const Environment& environment) {
  if (const auto name = topology::text_variable(environment, "HOROVOD_HOSTNAME")) return *name;
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

// What the job asks for must not be dropped in silence.
Status check_encryption(net::Protection protection) {
  if (protection != net::Protection::kAll) return Status::ok();
  return precondition_error(
      "HOROVOD_TLS is set, but MPI carries the data, and does not encrypt it; set "
      "HOROVOD_CPU_OPERATIONS=native as well, or unset HOROVOD_TLS");
}

// A port for what goes by TCP beside MPI.
struct TcpSide {
  bootstrap::TcpEnd end;
  net::TcpPort port;
};
Result<TcpSide> open_tcp_side(const topology::Topology& topology, const Environment& environment) {
  HVD_TRY_ASSIGN(bootstrap::TcpEnd end, bootstrap::look_at_tcp_end(topology, environment));
  HVD_TRY_ASSIGN(net::TcpPort port, bootstrap::listen_at(end));
  return TcpSide{std::move(end), std::move(port)};
}

// One is of no use without the others'.
Result<std::unique_ptr<net::Mesh>> open_side_mesh(Result<TcpSide> side,
                                                  const bootstrap::Roster& roster,
                                                  const net::Key& key, uint64_t epoch,
                                                  Deadline deadline) {
  if (!side) return side.status();
  for (const bootstrap::Member& member : roster.members) {
    if (member.addresses.empty())
      return precondition_error(concat(bootstrap::member_text(member), " has no address"));
  }
  return bootstrap::open_mesh(std::move(side->end), std::move(side->port), roster, key, epoch,
                              deadline);
}

// What a rank of a job knows when it opens its streams.
struct Gathered {
  const topology::Topology& topology;
  bootstrap::Roster roster;
  topology::HostMap hosts;
  net::Key key;
  bool is_given = false;  // the key
  uint64_t epoch = 0;
};

// How control and objects travel.
Status choose_ways(Group& group, store::Store& store, const Gathered& job,
                   Result<std::unique_ptr<net::Mesh>> mesh, Deadline deadline,
                   MpiMeshOptions& options) {
  if (job.roster.members.front().protection == net::Protection::kNone) {
    if (mesh) options.life_lines = std::move(*mesh);
    if (!mesh) HVD_LOG(kInfo, "no life lines beside MPI: ", mesh.status().message());
    return Status::ok();
  }
  const Result<net::Mesh*> own = mesh ? Result<net::Mesh*>(mesh->get()) : mesh.status();
  const TcpQuestion question{.members = job.roster.members,
                             .hosts = job.hosts,
                             .key = job.key,
                             .epoch = job.epoch,
                             .is_needed = job.is_given};
  HVD_TRY_ASSIGN(const std::string problem, ask_for_tcp(group, store, question, own, deadline));
  if (problem.empty()) {
    options.beside = std::move(*mesh);
    if (!job.is_given) explain_agreed_key(Carrier::kMpi, job.topology.rank, job.epoch);
    return Status::ok();
  }
  if (job.is_given) return refuse_open_mpi(problem);
  explain_open_mpi(problem, job.topology.rank, job.epoch);
  return Status::ok();
}

// What this rank says about itself, whether or not it has TCP.
bootstrap::Member introduction(const topology::Topology& topology, const std::string& host,
                               net::Protection protection, const Result<TcpSide>& side) {
  return {.version = version_text(),
          .rank = topology.rank,
          .size = topology.size,
          .local_rank = topology.local_rank,
          .local_size = topology.local_size,
          .host = host,
          .hostname = topology.hostname,
          .protection = protection,
          .has_tls = side && side->end.member.has_tls,
          .addresses = side ? side->end.member.addresses : std::vector<net::Address>()};
}

Result<bootstrap::Network> join_mesh(Group& group, const topology::Topology& topology,
                                     const std::string& host, const Environment& environment,
                                     store::Store& store, uint64_t epoch, Deadline deadline) {
  HVD_TRY_ASSIGN(const net::Protection protection, bootstrap::protection_of(environment));
  HVD_TRY_ASSIGN(const auto given, bootstrap::find_key(environment, deadline));
  bootstrap::KeyAgreement agreement(store, {.rank = topology.rank,
                                            .size = topology.size,
                                            .epoch = epoch,
                                            .hostname = topology.hostname});
  HVD_TRY_ASSIGN(const net::Key key, agreement.agree(given, deadline));
  auto side = open_tcp_side(topology, environment);
  const bootstrap::Member self = introduction(topology, host, protection, side);
  bootstrap::say_what_is_open(self);
  Gathered job{.topology = topology,
               .roster = {},
               .hosts = {},
               .key = key,
               .is_given = given.has_value(),
               .epoch = epoch};
  HVD_TRY_ASSIGN(job.roster, bootstrap::gather(self, store, key, epoch, deadline));
  HVD_TRY_ASSIGN(job.hosts, bootstrap::make_host_map(job.roster.members));
  auto mesh = open_side_mesh(std::move(side), job.roster, key, epoch, deadline);
  MpiMeshOptions options{.epoch = epoch};
  for (const bootstrap::Member& member : job.roster.members)
    options.hosts.push_back(member.hostname);
  HVD_TRY(choose_ways(group, store, job, std::move(mesh), deadline, options));
  bootstrap::Network network;
  network.hosts = std::move(job.hosts);
  network.host_secret = key.derive("horovod host", {});
  HVD_TRY_ASSIGN(network.mesh, make_mpi_mesh(group, std::move(options)));
  return network;
}

}  // namespace

Result<Joined> join(Group& group, const Environment& environment, Carrier carrier, uint64_t epoch,
                    Deadline deadline) {
  if (carrier == Carrier::kMpi) {
    HVD_TRY_ASSIGN(const net::Protection protection, bootstrap::protection_of(environment));
    HVD_TRY(check_encryption(protection));
  }
  MpiStore store(group);
  const std::string hostname = hostname_of(environment);
  const std::string host = bootstrap::host_identity(hostname);
  Joined joined;
  HVD_TRY_ASSIGN(joined.topology, find_placement({group.rank(), group.size(), hostname, host},
                                                 store, epoch, deadline));
  if (joined.topology.local_size == joined.topology.size) return joined;
  if (carrier == Carrier::kMpi) {
    HVD_TRY_ASSIGN(joined.network,
                   join_mesh(group, joined.topology, host, environment, store, epoch, deadline));
  } else {
    HVD_TRY_ASSIGN(joined.network,
                   bootstrap::join_network(joined.topology, environment, store, epoch, deadline));
    if (joined.network.key_source == bootstrap::KeySource::kAgreed)
      explain_agreed_key(carrier, joined.topology.rank, epoch);
  }
  return joined;
}

Result<Comm> comm_of_ranks(Api& api, std::span<const int32_t> ranks) {
  HVD_TRY_ASSIGN(const int size, api.size(api.world()));
  HVD_TRY_ASSIGN(const int me, api.rank(api.world()));
  std::vector<int> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  const bool is_unique = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  if (!is_unique || sorted.front() < 0 || sorted.back() >= size) {
    return invalid_argument(concat("init: comm [", join_text(ranks),
                                   "]: expected different ranks "
                                   "from 0 to ",
                                   size - 1, " of MPI_COMM_WORLD"));
  }
  if (!std::binary_search(sorted.begin(), sorted.end(), me)) {
    return invalid_argument(concat("init: comm [", join_text(ranks),
                                   "] does not have this process, "
                                   "which is rank ",
                                   me,
                                   " of MPI_COMM_WORLD; call init on the "
                                   "listed ranks only"));
  }
  if (static_cast<int>(sorted.size()) == size) return api.world();
  return api.subset(api.world(), sorted);
}

}  // namespace hvd::mpi
