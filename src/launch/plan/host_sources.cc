#include "launch/plan/host_sources.h"

#include <algorithm>
#include <utility>

#include "base/parse.h"
#include "base/text.h"
#include "launch/os/read_text_file.h"
#include "launch/os/run_program.h"
#include "launch/plan/lsf_hosts.h"
#include "launch/plan/prepare.h"
#include "launch/plan/slurm_hosts.h"

namespace hvd::launch {
namespace {

constexpr std::chrono::seconds kQueryTime{20};

Status missing_num_proc() {
  return invalid_argument("the number of workers is missing: give -np N");
}

Result<std::vector<HostSlots>> read_hostfile(const std::string& who, const std::string& path,
                                             int32_t default_slots) {
  HVD_TRY_ASSIGN(const std::string text, read_text_file(who, path));
  Result<std::vector<HostSlots>> hosts = parse_hostfile(text, default_slots);
  if (!hosts) return blame(concat(who, ": ", path), hosts.status());
  return hosts;
}

// The host file that the operator of a Kubernetes MPIJob mounts into the launcher's pod.
struct MpijobFile {
  const char* variable;
  std::string path;
};

std::optional<MpijobFile> mpijob_file(const EnvironmentList& environment) {
  for (const char* name :
       {"OMPI_MCA_orte_default_hostfile", "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE"}) {
    const auto path = get_variable(environment, name);
    if (path && !path->empty()) return MpijobFile{.variable = name, .path = *path};
  }
  return std::nullopt;
}

Result<std::optional<FoundHosts>> mpijob_hosts(const EnvironmentList& environment) {
  if (const auto file = mpijob_file(environment)) {
    int32_t default_slots = 1;
    constexpr char kSlotsName[] = "OMPI_MCA_orte_set_default_slots";
    if (const auto text = get_variable(environment, kSlotsName)) {
      const auto slots = parse_integer(*text, {1, kMaxWorkers});
      if (!slots) return blame(kSlotsName, slots.status());
      default_slots = static_cast<int32_t>(*slots);
    }
    HVD_TRY_ASSIGN(std::vector<HostSlots> hosts,
                   read_hostfile(file->variable, file->path, default_slots));
    return std::optional(
        FoundHosts{.hosts = std::move(hosts), .source = concat(file->variable, "=", file->path)});
  }
  return std::optional<FoundHosts>();
}

Result<std::string> query(const std::vector<std::string>& command,
                          const EnvironmentList& environment) {
  HVD_TRY_ASSIGN(const ProgramOutput output,
                 run_program(command, environment, Deadline::after(kQueryTime)));
  if (!output.status.is_success()) {
    return precondition_error(
        concat(command.front(), " ", describe(output.status), ": ", trim(output.err)));
  }
  return output.out;
}

Result<FoundHosts> lsf_job_hosts(const EnvironmentList& environment) {
  const auto allocation = get_variable(environment, "CSM_ALLOCATION_ID");
  if (!allocation) {
    return precondition_error(
        "this is an LSF job (LSB_JOBID is set) without CSM_ALLOCATION_ID: give the hosts with -H");
  }
  HVD_TRY_ASSIGN(const std::string nodes,
                 query({kCsmAllocationQuery, "-a", *allocation}, environment));
  HVD_TRY_ASSIGN(const std::vector<std::string> names, compute_nodes(nodes));
  HVD_TRY_ASSIGN(const std::string attributes,
                 query({kCsmNodeQuery, "-n", names.front()}, environment));
  HVD_TRY_ASSIGN(const NodeShape shape, node_shape(attributes));
  FoundHosts found{.hosts = {}, .source = "the LSF allocation", .lsf = shape};
  for (const std::string& name : names) {
    add_host(found.hosts, {name, std::max<int32_t>(shape.gpu_count, 1)});
  }
  return found;
}

Result<std::optional<FoundHosts>> batch_hosts(const EnvironmentList& environment) {
  HVD_TRY_ASSIGN(std::optional<FoundHosts> mpijob, mpijob_hosts(environment));
  if (mpijob) return mpijob;
  if (is_lsf_job(environment)) {
    HVD_TRY_ASSIGN(FoundHosts found, lsf_job_hosts(environment));
    return std::optional(std::move(found));
  }
  HVD_TRY_ASSIGN(std::optional<std::vector<HostSlots>> slurm, slurm_hosts(environment));
  if (!slurm) return std::optional<FoundHosts>();
  return std::optional(FoundHosts{.hosts = *std::move(slurm),
                                  .source = "the Slurm allocation (SLURM_JOB_NODELIST)"});
}

// The first call; a script that fails here fails the job.
Result<FoundHosts> discovered_hosts(const Options& options, const EnvironmentList& environment) {
  const std::string& script = options.elastic.host_discovery_script;
  const std::string who = concat("--host-discovery-script ", script);
  const auto output =
      run_program({"/bin/sh", "-c", script}, environment, Deadline::after(kDiscoveryTime));
  if (!output) return blame(who, output.status());
  if (!output->status.is_success()) {
    return precondition_error(concat(who, " ", describe(output->status),
                                     output->err.empty() ? "" : concat(": ", trim(output->err))));
  }
  if (names_no_host(output->out)) return FoundHosts{.hosts = {}, .source = who};
  auto hosts = parse_discovered(output->out, options);
  if (!hosts) return hosts.status();
  return FoundHosts{.hosts = *std::move(hosts), .source = who};
}

Result<FoundHosts> hosts_of_file(const Options& options) {
  HVD_TRY_ASSIGN(const std::string text, read_text_file("--hostfile", options.hostfile));
  FoundHosts found{.hosts = {}, .source = concat("--hostfile ", options.hostfile)};
  if (may_hosts_change(options) && names_no_host(text)) return found;
  auto hosts = parse_hostfile(text, options.elastic.slots_per_host.value_or(1));
  if (!hosts) return blame(concat("--hostfile: ", options.hostfile), hosts.status());
  found.hosts = *std::move(hosts);
  return found;
}

}  // namespace

Result<std::vector<HostSlots>> parse_discovered(std::string_view text, const Options& options) {
  const std::string who = concat("--host-discovery-script ", options.elastic.host_discovery_script);
  auto hosts = parse_hostfile(text, options.elastic.slots_per_host.value_or(1));
  if (!hosts) return blame(who, hosts.status());
  if (const Status good = check_host_names(*hosts); !good) return blame(who, good);
  // A line that comes twice says the same twice.
  std::vector<HostSlots> unique;
  for (HostSlots& host : *hosts) {
    if (std::find(unique.begin(), unique.end(), host) == unique.end()) {
      unique.push_back(std::move(host));
    }
  }
  return merge_hosts(unique);
}

bool may_hosts_change(const Options& options) {
  const ElasticOptions& elastic = options.elastic;
  return elastic.is_requested() && (!elastic.host_discovery_script.empty() ||
                                    !options.hostfile.empty() || !elastic.join.empty());
}

Result<std::vector<HostSlots>> read_hosts_again(const Options& options) {
  HVD_TRY_ASSIGN(
      std::vector<HostSlots> hosts,
      read_hostfile("--hostfile", options.hostfile, options.elastic.slots_per_host.value_or(1)));
  if (const Status good = check_host_names(hosts); !good) return blame("--hostfile", good);
  return merge_hosts(hosts);
}

Status check_num_proc(const Options& options, const EnvironmentList& environment) {
  if (options.num_proc != 0 || mpijob_file(environment) || is_lsf_job(environment)) {
    return Status::ok();
  }
  const auto slurm = slurm_hosts(environment);
  const bool is_slurm = !slurm || slurm->has_value();  // even if its variables make no sense
  return is_slurm ? Status::ok() : missing_num_proc();
}

Result<FoundHosts> find_hosts(const Options& options, const EnvironmentList& environment) {
  FoundHosts found;
  bool from_batch_system = false;
  if (!options.elastic.host_discovery_script.empty()) {
    HVD_TRY_ASSIGN(found, discovered_hosts(options, environment));
  } else if (!options.elastic.join.empty()) {
    HVD_TRY_ASSIGN(std::string own, own_hostname());
    found.hosts = {{std::move(own), options.elastic.slots_per_host.value_or(1)}};
    found.source = "--join";
  } else if (!options.hosts.empty()) {
    Result<std::vector<HostSlots>> hosts = parse_hosts(options.hosts);
    if (!hosts) return blame("-H", hosts.status());
    found.hosts = *std::move(hosts);
    found.source = "-H";
  } else if (!options.hostfile.empty()) {
    HVD_TRY_ASSIGN(found, hosts_of_file(options));
  } else {
    HVD_TRY_ASSIGN(std::optional<FoundHosts> batch, batch_hosts(environment));
    from_batch_system = batch.has_value();
    if (batch) found = *std::move(batch);
  }
  // The one gate before ssh and the shell of mpirun, whoever named the hosts.
  if (const Status good = check_host_names(found.hosts); !good) return blame(found.source, good);
  found.named = std::exchange(found.hosts, merge_hosts(found.hosts));
  found.num_proc = options.num_proc;
  if (found.num_proc == 0) {
    if (!from_batch_system && !options.elastic.is_requested()) return missing_num_proc();
    found.num_proc = from_batch_system ? static_cast<int32_t>(total_slots(found.hosts))
                                       : options.elastic.min_num_proc.value_or(1);
  }
  // An allocation of one node says what was asked for, not what fits: a shell that salloc gave one
  // task may still run as many workers as the user likes.
  if (from_batch_system && found.hosts.size() == 1) {
    found.hosts.front().slots = std::max(found.hosts.front().slots, found.num_proc);
    found.named = found.hosts;
  }
  if (may_hosts_change(options))
    return found;  // who waits for more slots, and for how long: policy.h
  if (const int64_t slots = total_slots(found.hosts);
      !found.hosts.empty() && slots < found.num_proc) {
    return invalid_argument(concat("-np ", found.num_proc,
                                   " asks for more workers than the hosts of ", found.source,
                                   " have slots (", slots, ")"));
  }
  if (found.hosts.empty()) {
    found.hosts = {{"localhost", found.num_proc}};
    found.named = found.hosts;
    found.source = "this machine";
  }
  return found;
}

}  // namespace hvd::launch
