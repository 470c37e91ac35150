#include "mpi/join.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "base/version.h"
#include "bootstrap/gathering.h"
#include "bootstrap/host_identity.h"
#include "bootstrap/store_place.h"
#include "bootstrap/tcp_end.h"
#include "mpi/mpi_mesh.h"
#include "mpi/mpi_store.h"
#include "mpi/placement.h"
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
Status check_encryption(const Environment& environment) {
  HVD_TRY_ASSIGN(const auto tls, topology::integer_variable(environment, "HOROVOD_TLS", 0));
  if (tls.value_or(0) == 0) return Status::ok();
  return precondition_error(
      "HOROVOD_TLS is set, but MPI carries the data, and does not encrypt it; set "
      "HOROVOD_CPU_OPERATIONS=native as well, or unset HOROVOD_TLS");
}

// A port for the life lines (life_line.h). Nothing here keeps a job from running.
struct LifePort {
  bootstrap::TcpEnd end;
  net::TcpPort port;
};
std::optional<LifePort> open_life_port(const topology::Topology& topology,
                                       const Environment& environment) {
  auto end = bootstrap::look_at_tcp_end(topology, environment);
  auto port = end ? bootstrap::listen_at(*end) : Result<net::TcpPort>(end.status());
  if (port) return LifePort{std::move(*end), std::move(*port)};
  HVD_LOG(kInfo, "no life lines beside MPI: ", port.status().message());
  return std::nullopt;
}

// The roster is signed with the key that the environment names. Without one MPI, which carries
// everything else as well, is trusted with the roster, too.
Result<net::Key> signing_key(const Environment& environment, Deadline deadline) {
  HVD_TRY_ASSIGN(const auto given, bootstrap::find_key(environment, deadline));
  if (given) return *given;
  return net::Key(std::array<uint8_t, net::kKeyBytes>{});
}

// The roster came through MPI alone, so its random bytes are a secret of the job.
std::shared_ptr<net::Mesh> open_life_mesh(LifePort port, const bootstrap::Roster& roster,
                                          uint64_t epoch, Deadline deadline) {
  port.end.member.protection = net::Protection::kNone;  // a life line carries nothing
  const auto key = net::Key::parse(roster.salt);
  auto mesh = key ? bootstrap::open_mesh(std::move(port.end), std::move(port.port), roster, *key,
                                         epoch, deadline)
                  : Result<std::unique_ptr<net::Mesh>>(key.status());
  if (mesh) return std::move(*mesh);
  HVD_LOG(kInfo, "no life lines beside MPI: ", mesh.status().message());
  return nullptr;
}

Result<bootstrap::Network> join_mesh(Group& group, const topology::Topology& topology,
                                     const std::string& host, const Environment& environment,
                                     store::Store& store, uint64_t epoch, Deadline deadline) {
  auto port = open_life_port(topology, environment);
  const bootstrap::Member self{
      .version = version_text(),
      .rank = topology.rank,
      .size = topology.size,
      .local_rank = topology.local_rank,
      .local_size = topology.local_size,
      .host = host,
      .hostname = topology.hostname,
      .addresses = port ? port->end.member.addresses : std::vector<net::Address>()};
  HVD_TRY_ASSIGN(const net::Key key, signing_key(environment, deadline));
  HVD_TRY_ASSIGN(const bootstrap::Roster roster,
                 bootstrap::gather(self, store, key, epoch, deadline));
  bootstrap::Network network;
  HVD_TRY_ASSIGN(network.hosts, bootstrap::make_host_map(roster.members));
  MpiMeshOptions options{.epoch = epoch};
  for (const bootstrap::Member& member : roster.members) options.hosts.push_back(member.hostname);
  if (port) options.life_lines = open_life_mesh(std::move(*port), roster, epoch, deadline);
  HVD_TRY_ASSIGN(network.mesh, make_mpi_mesh(group, std::move(options)));
  return network;
}

}  // namespace

Result<Joined> join(Group& group, const Environment& environment, Carrier carrier, uint64_t epoch,
                    Deadline deadline) {
  if (carrier == Carrier::kMpi) HVD_TRY(check_encryption(environment));
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
