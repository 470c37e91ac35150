#include "topology/topology.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "topology/launcher.h"

namespace hvd::topology {
namespace {

std::string machine_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

// Fills in what the launcher did not say, where rank and size leave no choice: without local values
// the job has one host, and without cross values its hosts have equal numbers of ranks, one host
// after the other.
Status complete(LauncherFacts& facts) {
  const Position world = facts.world;
  if (!facts.local && facts.cross && facts.cross->size > 1) {
    return invalid_argument(concat(facts.cross->size_variable, " is ", facts.cross->size,
                                   ", but nothing says the local rank; set HOROVOD_LOCAL_RANK and "
                                   "HOROVOD_LOCAL_SIZE with HOROVOD_RANK and HOROVOD_SIZE"));
  }
  if (!facts.local) facts.local = world;
  if (facts.cross) return Status::ok();
  const Position local = *facts.local;
  if (world.size % local.size != 0 || world.rank % local.size != local.rank) {
    return invalid_argument(concat(world.rank_variable, " ", world.rank, " of ", world.size, " is ",
                                   local.rank_variable, " ", local.rank, " of ", local.size,
                                   ": the ranks do not fill hosts of equal size one after the "
                                   "other; set HOROVOD_CROSS_RANK and "
                                   "HOROVOD_CROSS_SIZE"));
  }
  facts.cross = Position{world.rank / local.size, world.size / local.size};
  return Status::ok();
}

// All processes of a job have one parent where the launcher starts them directly. The parent's
// start time tells it from an earlier process with the same id.
std::string name_from_parent() {
  const pid_t parent = ::getppid();
  std::ifstream file(concat("/proc/", parent, "/stat"));
  std::stringstream text;
  text << file.rdbuf();
  // The command, in parentheses, may hold anything; the start time is the 20th field behind it.
  std::string stat = text.str();
  stat.erase(0, std::min(stat.rfind(')'), stat.size()));
  std::istringstream fields(stat);
  std::string start_time;
  for (int i = 0; i <= 20 && fields >> start_time; ++i) {
  }
  return concat("parent-", parent, "-", start_time);
}

Status check_pair(const char* what, int32_t rank, int32_t size) {
  if (size < 1) return invalid_argument(concat(what, "size: expected 1 or more, got ", size));
  if (rank < 0 || rank >= size) {
    return invalid_argument(concat(what, "rank: expected 0 to ", size - 1, " (", what, "size is ",
                                   size, "), got ", rank));
  }
  return Status::ok();
}

}  // namespace

Result<Topology> topology_from_environment(const Environment& environment) {
  return topology_from(environment, file_reader());
}

Result<Topology> topology_from(const Environment& environment, const FileReader& files) {
  HVD_TRY_ASSIGN(auto facts, launcher_facts(environment, files));
  Topology topology{.hostname = facts ? facts->hostname : ""};
  if (const auto name = text_variable(environment, "HOROVOD_HOSTNAME")) topology.hostname = *name;
  if (topology.hostname.empty()) topology.hostname = machine_name();
  if (!facts) return topology;

  HVD_TRY(complete(*facts));
  topology.launcher = facts->launcher;
  topology.first_host = facts->first_host;
  topology.store_port = facts->store_port;
  topology.rank = facts->world.rank;
  topology.size = facts->world.size;
  topology.local_rank = facts->local->rank;
  topology.local_size = facts->local->size;
  topology.cross_rank = facts->cross->rank;
  topology.cross_size = facts->cross->size;
  HVD_TRY(check_topology(topology));

  if (topology.size == 1) return topology;
  topology.job_id = text_variable(environment, "HOROVOD_JOB_ID").value_or(facts->job_name);
  if (topology.job_id.empty()) topology.job_id = name_from_parent();
  return topology;
}

Status check_topology(const Topology& topology) {
  HVD_TRY(check_pair("", topology.rank, topology.size));
  HVD_TRY(check_pair("local ", topology.local_rank, topology.local_size));
  HVD_TRY(check_pair("cross ", topology.cross_rank, topology.cross_size));
  const auto check_part = [&](const char* what, int32_t part) {
    if (part <= topology.size) return Status::ok();
    return invalid_argument(concat(what, " size: expected at most ", topology.size,
                                   ", the size of the job, got ", part));
  };
  HVD_TRY(check_part("local", topology.local_size));
  return check_part("cross", topology.cross_size);
}

}  // namespace hvd::topology
