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

Facts own_facts(int device, bool makes_id) {
  Facts facts;
  char host[sizeof facts.host] = {};
  (void)::gethostname(host, sizeof host - 1);
  put_text(facts.host, host);
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

bool span_hosts(std::span<const Facts> facts) {
  return std::any_of(facts.begin(), facts.end(), [&](const Facts& other) {
    return text_of(other.host) != text_of(facts[0].host);
  });
}

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
    return concat("member ", member, " on ", text_of(facts[member].host), ": ",
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
      if (text_of(facts[a].device).empty() || text_of(facts[a].host) != text_of(facts[b].host) ||
          text_of(facts[a].device) != text_of(facts[b].device))
        continue;
      return concat("members ", a, " and ", b, " on ", text_of(facts[a].host), " share the device ",
                    text_of(facts[a].device),
                    ", where NCCL needs one for each: choose it by the local rank, as in "
                    "torch.cuda.set_device(hvd.local_rank())");
    }
  }
  return "";
}

}  // namespace

Decision decide(std::span<const Facts> facts) {
  if (span_hosts(facts) && anybody_protects_all(facts))
    return {false, {}, "HOROVOD_TLS=1 protects all that travels between hosts, which NCCL cannot"};
  std::string missing = missing_library(facts), shared = shared_device(facts);
  const std::string_view between = missing.empty() || shared.empty() ? "" : ". Besides, ";
  Abilities abilities{.has_kernels = true, .packs = true};
  for (const Facts& member : facts) {
    abilities.has_kernels = abilities.has_kernels && (member.abilities & kHasKernels) != 0;
    abilities.packs = abilities.packs && (member.abilities & kPacks) != 0;
  }
  return {missing.empty() && shared.empty(), abilities, concat(missing, between, shared)};
}

std::string settings_about_levels(const Environment& environment) {
  std::string names;
  for (const char* name : {"HOROVOD_HIERARCHICAL_ALLREDUCE", "HOROVOD_HIERARCHICAL_ALLGATHER",
                           "HOROVOD_TORUS_ALLREDUCE"}) {
    const auto number = parse_integer(environment(name).value_or("0"));
    if (number && *number > 0) names += concat(names.empty() ? "" : ", ", name);
  }
  return names;
}

}  // namespace hvd::collective::gpu
