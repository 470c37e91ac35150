#include "collective/gpu/agreement.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/log.h"
#include "base/parse.h"
#include "base/text.h"
#include "device/driver.h"

namespace hvd::collective::gpu {
namespace {

template <size_t N>
void put_text(char (&to)[N], std::string_view text) {
  std::memset(to, 0, N);
  std::memcpy(to, text.data(), std::min(N - 1, text.size()));
}

template <size_t N>
std::string_view text_of(const char (&from)[N]) {
  return {from, strnlen(from, N)};
}

}  // namespace

namespace {

int32_t own_abilities(int device) {
  const auto current = device::Current::enter(device);
  const auto kernels =
      !current ? Result<const GpuKernels*>(current.status()) : GpuKernels::of(device);
  if (!kernels)
    HVD_LOG(kDebug, "device ", device, " without our kernels: ", kernels.status().message());
  const auto batches = process_environment()("HOROVOD_BATCH_D2D_MEMCOPIES");
  const auto number = parse_integer(batches.value_or("1"));
  const bool packs = !number || *number != 0;
  return (kernels ? kHasKernels : 0) | (packs ? kPacks : 0);
}

}  // namespace

Facts own_facts(int device, int host, bool makes_id) {
  Facts facts;
  facts.host = host;
  char name[sizeof facts.host_name] = {};
  (void)::gethostname(name, sizeof name - 1);
  put_text(facts.host_name, name);
  facts.asks = asked_levels(process_environment());
  facts.protects_all = process_environment()("HOROVOD_TLS").value_or("0") == "0" ? 0 : 1;
  const auto driver = device::Driver::get();
  const auto bus = !driver ? Result<std::string>(driver.status()) : (*driver)->bus_id(device);
  if (!bus) {
    put_text(facts.why, bus.status().message());
    return facts;
  }
  put_text(facts.device, *bus);
  const auto nccl = device::NcclApi::get();
  if (!nccl) {
    put_text(facts.why, nccl.status().message());
    return facts;
  }
  if (makes_id) {
    const Status status = (*nccl)->check((*nccl)->get_unique_id(&facts.id), "ncclGetUniqueId");
    if (!status.is_ok()) {
      put_text(facts.why, status.message());
      return facts;
    }
  }
  facts.nccl_version = (*nccl)->version;
  facts.abilities = own_abilities(device);
  return facts;
}

namespace {

bool anybody_protects_all(std::span<const Facts> facts) {
  return std::any_of(facts.begin(), facts.end(),
                     [](const Facts& member) { return member.protects_all != 0; });
}

}  // namespace

namespace {

// The first member without NCCL, and what to do about it; empty: all have it.
std::string missing_library(std::span<const Facts> facts) {
  for (size_t member = 0; member < facts.size(); ++member) {
    if (facts[member].nccl_version >= device::kLeastNccl) continue;
    return concat("member ", member, " on ", text_of(facts[member].host_name), ": ",
                  text_of(facts[member].why),
                  ". Install NCCL 2.16 or newer on every host (pip install nvidia-nccl-cu12), or "
                  "name its file with HOROVOD_NCCL_LIB");
  }
  return "";
}

// The first two members with one device between them; empty: each has its own.
std::string shared_device(std::span<const Facts> facts) {
  for (size_t a = 0; a < facts.size(); ++a) {
    for (size_t b = a + 1; b < facts.size(); ++b) {
      if (text_of(facts[a].device).empty() || facts[a].host != facts[b].host ||
          text_of(facts[a].device) != text_of(facts[b].device))
        continue;
      return concat("members ", a, " and ", b, " on ", text_of(facts[a].host_name),
                    " share the device ", text_of(facts[a].device),
                    ", where NCCL needs one for each: choose it by the local rank, as in "
                    "torch.cuda.set_device(hvd.local_rank())");
    }
  }
  return "";
}

}  // namespace

HostMembers members_by_host(std::span<const Facts> facts) {
  HostMembers hosts;
  for (size_t member = 0; member < facts.size(); ++member) {
    const auto is_here = [&](const std::vector<int>& host) {
      return facts[static_cast<size_t>(host[0])].host == facts[member].host;
    };
    const auto found = std::find_if(hosts.begin(), hosts.end(), is_here);
    auto& host = found == hosts.end() ? hosts.emplace_back() : *found;
    host.push_back(static_cast<int>(member));
  }
  return hosts;
}

namespace {

// What stands against levels; empty: nothing.
std::string why_one_stage(std::span<const Facts> facts, const HostMembers& hosts) {
  if (hosts.size() == 1) return "all members are on one host";
  const size_t count = hosts[0].size();
  for (const auto& host : hosts) {
    if (host.size() == count) continue;
    const auto name_of = [&](const auto& one) {
      return text_of(facts[static_cast<size_t>(one[0])].host_name);
    };
    return concat("hosts need as many members each, and ", name_of(hosts[0]), " has ", count, ", ",
                  name_of(host), " ", host.size());
  }
  return count == 1 ? "each host has one member" : "";
}

void choose_levels(std::span<const Facts> facts, const HostMembers& hosts, Decision& decision) {
  int32_t asked = 0;
  for (const Facts& member : facts) asked |= member.asks;
  const bool hierarchical = (asked & kAsksHierarchical) != 0, torus = (asked & kAsksTorus) != 0;
  if (!hierarchical && !torus) return;
  const std::string why = why_one_stage(facts, hosts);
  if (!why.empty()) {
    decision.without_levels = concat(
        hierarchical ? "HOROVOD_HIERARCHICAL_ALLREDUCE" : "", hierarchical && torus ? ", " : "",
        torus ? "HOROVOD_TORUS_ALLREDUCE" : "", ": no effect on GPU tensors: ", why);
  } else if (torus && (decision.may_leave_host || !hierarchical)) {
    decision.levels = Levels::kTorus;
  } else {
    decision.levels = Levels::kHierarchical;
  }
}

Abilities common_abilities(std::span<const Facts> facts) {
  Abilities abilities{.has_kernels = true, .packs = true};
  for (const Facts& member : facts) {
    abilities.has_kernels = abilities.has_kernels && (member.abilities & kHasKernels) != 0;
    abilities.packs = abilities.packs && (member.abilities & kPacks) != 0;
  }
  return abilities;
}

}  // namespace

Decision decide(std::span<const Facts> facts) {
  const HostMembers hosts = members_by_host(facts);
  Decision decision;
  const auto has_fewer = [](const Facts& a, const Facts& b) {
    return a.nccl_streams < b.nccl_streams;
  };
  const int fewest = std::min_element(facts.begin(), facts.end(), has_fewer)->nccl_streams;
  decision.nccl_streams = std::max(fewest, 1);
  decision.abilities = common_abilities(facts);
  decision.may_leave_host = hosts.size() == 1 || !anybody_protects_all(facts);
  choose_levels(facts, hosts, decision);
  if (!decision.may_leave_host && decision.levels != Levels::kHierarchical) {
    decision.reason =
        "HOROVOD_TLS=1 protects all that travels between hosts, which NCCL cannot. With equal "
        "numbers of GPUs on all hosts, HOROVOD_HIERARCHICAL_ALLREDUCE=1 uses it inside of them";
    return decision;
  }
  std::string missing = missing_library(facts), shared = shared_device(facts);
  const std::string_view between = missing.empty() || shared.empty() ? "" : ". Besides, ";
  decision.use_nccl = missing.empty() && shared.empty();
  decision.reason = concat(missing, between, shared);
  return decision;
}

int32_t asked_levels(const Environment& environment) {
  const auto asked = [&](const char* name, int32_t bit) {
    const auto number = parse_integer(environment(name).value_or("0"));
    return number && *number > 0 ? bit : 0;
  };
  return asked("HOROVOD_HIERARCHICAL_ALLREDUCE", kAsksHierarchical) |
         asked("HOROVOD_TORUS_ALLREDUCE", kAsksTorus) |
         asked("HOROVOD_HIERARCHICAL_ALLGATHER", kAsksGather);
}

}  // namespace hvd::collective::gpu
