// membership.h - who a channel's members are, which of them are on this host, and who this rank is
// among them. Constant.
#pragma once

#include <cstdint>
#include <vector>

#include "collective/gpu/options.h"
#include "mirror/mirrored_channel.h"

namespace hvd::engine {

struct ChannelOptions {
  uint32_t id = 0;
  uint32_t wire_id = 0;            // names the set between hosts, and no set before it
  std::vector<int32_t> ranks;      // members in set-rank order
  std::vector<int32_t> host_of{};  // the same: host numbers; empty: one host
  int me = 0;                      // set rank
  size_t cache_capacity = 1024;
  collective::gpu::Options gpu{};  // size and place are filled in here

  bool spans_hosts() const { return mirror::Members{ranks, host_of}.spans_hosts(); }
};

class Membership {
 public:
  explicit Membership(ChannelOptions options);

  const ChannelOptions& options() const { return options_; }
  uint32_t id() const { return options_.id; }
  int size() const { return static_cast<int>(options_.ranks.size()); }
  int me() const { return options_.me; }
  const std::vector<int32_t>& ranks() const { return options_.ranks; }
  int32_t rank_of(int member) const { return options_.ranks[static_cast<size_t>(member)]; }
  int32_t my_rank() const { return rank_of(me()); }

  // Members on this host, in the order of the link: as set ranks and as ranks of the job.
  const std::vector<int>& members_here() const { return members_here_; }
  const std::vector<int>& ranks_here() const { return ranks_here_; }
  int my_place_here() const;

  // Payloads up to here are deposited, unless the channel is tuned otherwise.
  uint32_t small_limit() const;

 private:
  const ChannelOptions options_;
  const std::vector<int> members_here_;
  const std::vector<int> ranks_here_;
};

}  // namespace hvd::engine
