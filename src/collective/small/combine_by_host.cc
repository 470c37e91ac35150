#include "collective/small/combine_by_host.h"

#include <algorithm>
#include <vector>

#include "collective/hosts/two_level.h"
#include "shm/job_layout.h"

namespace hvd::collective::small {
namespace {

constexpr size_t kBlockElements = 256;
constexpr size_t kBlockBytes = kBlockElements * 8;

// One block per host, one for this member's elements and one for the result.
std::byte* scratch(size_t blocks) {
  thread_local std::vector<std::byte> memory;
  if (memory.size() < blocks * kBlockBytes) memory.resize(blocks * kBlockBytes);
  return memory.data();
}

}  // namespace

void combine_by_host(const hosts::HostLayout& layout, const Numeric& n, const Combine& args) {
  const auto host_count = static_cast<size_t>(layout.host_count());
  std::byte* const memory = scratch(host_count + 2);
  std::byte* const mine = memory + host_count * kBlockBytes;
  std::byte* const result = mine + kBlockBytes;
  const hosts::TwoLevel levels = hosts::TwoLevel::of(n, layout);
  const auto my_host = static_cast<unsigned>(layout.host(static_cast<int>(args.own)));
  for (size_t at = 0; at < args.count; at += kBlockElements) {
    const size_t count = std::min(kBlockElements, args.count - at);
    put(n, mine, args.in == nullptr ? nullptr : args.in + at * n.element_bytes(), count);
    const std::byte* of_host[shm::kMaxRanks];
    for (size_t host = 0; host < host_count; ++host) {
      const void* sources[shm::kMaxRanks];
      const std::vector<int>& members = layout.on_host(static_cast<int>(host));
      for (size_t i = 0; i < members.size(); ++i) {
        const auto member = static_cast<unsigned>(members[i]);
        sources[i] = member == args.own ? mine : args.slots[member] + at * n.slot_bytes();
      }
      void* sum = memory + host * kBlockBytes;
      kernels().reduce({n.slot_dtype, n.op, count, sources, static_cast<unsigned>(members.size()),
                        &sum, 1, levels.inside(members.size())});
      of_host[host] = static_cast<const std::byte*>(sum);
    }
    hosts::combine_between(layout, levels.between,
                           {of_host, static_cast<unsigned>(host_count), my_host, of_host[my_host],
                            result, nullptr, count});
    get(n, args.out == nullptr ? nullptr : args.out + at * n.element_bytes(), result, count);
  }
}

}  // namespace hvd::collective::small
