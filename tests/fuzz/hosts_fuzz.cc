// hosts_fuzz.cc - whatever a user, a file or a batch system gives for a list of hosts ends in names
// that may stand in the arguments of ssh and in the line of a shell, or in a Status.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/text.h"
#include "launch/os/shell_words.h"
#include "launch/plan/hosts.h"
#include "launch/plan/lsf_hosts.h"
#include "launch/plan/mpi_command.h"
#include "launch/plan/slurm_hosts.h"

namespace {

using namespace hvd;
using namespace hvd::launch;

void check_names(const std::vector<HostSlots>& hosts) {
  for (const HostSlots& host : hosts) {
    HVD_ASSERT(check_host_name(host.host), "what a list gives is a name");
    HVD_ASSERT(!host.host.starts_with('-'), "no option of ssh");
    HVD_ASSERT(shell_quote(host.host) == host.host, "a shell reads nothing in it");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto hosts = parse_hosts(text)) check_names(*hosts);
  if (const auto hosts = parse_hostfile(text, 1)) check_names(*hosts);
  if (const auto names = compute_nodes(text)) {
    for (const std::string& name : *names) HVD_ASSERT(check_host_name(name), "LSF's as well");
  }
  (void)node_shape(text).is_ok();
  (void)threads_per_core(text).is_ok();
  if (size < 64) {  // short texts can mean many nodes
    (void)expand_nodelist(text).is_ok();
    (void)expand_counts(text).is_ok();
    const auto slurm = slurm_hosts({concat("SLURM_JOB_NODELIST=", text), "SLURM_TASKS_PER_NODE=2"});
    if (slurm && *slurm) check_names(**slurm);
  }
  if (const auto words = shell_split(text)) {
    HVD_ASSERT(shell_split(shell_join(*words)).value() == *words, "quoting loses nothing");
  }
  return 0;
}
