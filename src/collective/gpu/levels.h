// levels.h - a reduction over several hosts in levels: the members of a host reduce, and hold a
// share of the result each; the shares are reduced between the hosts, and gathered inside of them.
// Who meets whom, and the calls of each stage. Pure; any thread. Only agreed values decide.
#pragma once

#include <string_view>
#include <vector>

#include "collective/gpu/nccl_calls.h"

namespace hvd::collective::gpu {

// What joins the hosts.
enum class Levels {
  kNone,          // one stage for all members
  kHierarchical,  // our own collectives, through host memory
  kTorus          // NCCL, among members with the same place in their hosts
};

// The members of each host, in order. Levels need equal numbers of them.
using HostMembers = std::vector<std::vector<int>>;

// Where a member is.
struct Layout {
  int host_size = 1;  // members of its host
  int place = 0;      // among them
  int host_count = 1;
  int host = 0;
  int host_leader = 0;    // the member whose id those of the host meet by
  int across_leader = 0;  // and those with its place in their hosts
};
Layout layout_of(const HostMembers& hosts, int me);

// Whom a stage joins.
enum class Reach { kAll, kHost, kAcross, kHostMemory };
struct Stage {
  Reach reach = Reach::kAll;
  std::string_view activity;  // in the timeline
  std::vector<Call> calls;    // kHostMemory: the whole ones, of which make_middle() takes shares
};

// Whether a member that has nothing to give for an element may give zero.
bool zero_is_neutral(const Reduction& reduction);
// With levels all calls are reductions to all, in device memory of this member.
std::vector<Stage> stages_of(std::vector<Call> calls, Levels levels, const Layout& layout);
// What runs through host memory between the first stage and the last one: of each host's results
// every member gives its share, and zeros for the rest.
void make_middle(const std::vector<Call>& calls, const Layout& layout, Work& work);

}  // namespace hvd::collective::gpu
