// layout.h - where the members of one channel live: which host, which place among the members of
// that host. The first `lanes` members of every host drive the network, each a shard of its own
// with the members of the same place on the other hosts; further members of a larger host take part
// in shared memory alone. The same value on all members. Pure; any thread.
#pragma once

#include <cstddef>
#include <vector>

namespace hvd::collective::hosts {

struct HostLayout {
  std::vector<int> host_of;               // member -> host, numbered by first appearance
  std::vector<int> place_of;              // member -> place among the members of its host
  std::vector<std::vector<int>> members;  // host -> its members, ascending
  int lanes = 1;                          // the smallest number of members on any host
  std::vector<int> weights;               // host -> its members, in lowest terms: all 1 if alike
  int total_weight = 0;                   // of all hosts

  // `labels[m]` tells the host of member m: any numbers, equal for members of one host. Not empty.
  static HostLayout of(const std::vector<int>& labels);

  int size() const { return static_cast<int>(host_of.size()); }
  int host_count() const { return static_cast<int>(members.size()); }
  bool is_even() const { return total_weight == host_count(); }  // hosts have equally many
  int host(int member) const { return host_of[static_cast<size_t>(member)]; }
  int place(int member) const { return place_of[static_cast<size_t>(member)]; }
  const std::vector<int>& on_host(int host) const { return members[static_cast<size_t>(host)]; }
  // Who on `host` deals with what `member` sends to that host.
  int counterpart(int member, int host) const {
    const std::vector<int>& there = on_host(host);
    return there[static_cast<size_t>(place(member)) % there.size()];
  }
};

}  // namespace hvd::collective::hosts
