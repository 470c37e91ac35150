// agreement.h - how the members of a channel move data of their devices: by NCCL if all of them
// can, else through host memory. Each says what it has; all decide alike. Pure, apart from
// own_facts().
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "collective/gpu/launch_plan.h"
#include "device/nccl_api.h"

namespace hvd::collective::gpu {

using device::NcclId;

// What one member says; bytes as they travel between members. Texts end with a zero.
struct Facts {
  int32_t nccl_version = 0;  // 0: has none
  int32_t host = 0;          // its number in the layout of the channel: names need not differ
  char host_name[60] = {};   // for messages
  char device[32] = {};      // its place on the bus
  NcclId id{};               // of the first member: where the communicator meets
  int32_t protects_all = 0;  // HOROVOD_TLS=1
  int32_t abilities = 0;     // kHasKernels, kPacks
  int32_t asks = 0;          // for levels: kAsks...
  int32_t nccl_streams = 1;  // HOROVOD_NUM_NCCL_STREAMS
  char why[140] = {};        // it has no NCCL
};
static_assert(sizeof(Facts) == 384);
inline constexpr int32_t kHasKernels = 1;  // our own can be loaded
inline constexpr int32_t kPacks = 2;       // HOROVOD_BATCH_D2D_MEMCOPIES
inline constexpr int32_t kAsksHierarchical = 1;
inline constexpr int32_t kAsksTorus = 2;
inline constexpr int32_t kAsksGather = 4;  // HOROVOD_HIERARCHICAL_ALLGATHER

// Where levels have been agreed on, a second round: the ids of those that lead.
struct LevelIds {
  NcclId host{};    // of the first member of a host
  NcclId across{};  // of the members of the first host
};

// What this process has. `device` is -1 on a member without a device of its own (it has joined).
Facts own_facts(int device, int host, bool makes_id);

struct Decision {
  bool use_nccl = false;
  Abilities abilities;   // of all members
  int nccl_streams = 1;  // what all members have
  std::string reason;    // why not
  // Levels count for all if one member asks for them, and the hosts allow it.
  Levels levels = Levels::kNone;
  std::string without_levels;  // why not, though they were asked for; else empty
  bool may_leave_host = true;  // by NCCL; if not, what has no levels goes through host memory
};
Decision decide(std::span<const Facts> facts);
HostMembers members_by_host(std::span<const Facts> facts);

// The settings about levels that are on.
int32_t asked_levels(const Environment& environment);

}  // namespace hvd::collective::gpu
