#include "collective/gpu/levels.h"

#include <algorithm>

#include "collective/gpu/staging_parts.h"

namespace hvd::collective::gpu {
namespace {

constexpr uint64_t kShareAlignment = 16;  // bytes: what a GPU moves at once

// How the elements of a call are dealt out to the members of a host: equal shares, one behind the
// other, then a few that all of them reduce.
struct Shares {
  uint64_t element = 1;  // bytes
  uint64_t each = 0;     // elements of a share
  uint64_t rest = 0;

  uint64_t rest_offset(const Layout& l) const { return offset(static_cast<uint64_t>(l.host_size)); }
  uint64_t offset(uint64_t share) const { return share * each * element; }
};

Shares shares_of(const Call& call, const Layout& l) {
  Shares s;
  s.element = plain_numeric(call.reduction).element_bytes();
  const uint64_t unit = kShareAlignment / s.element;
  const auto members = static_cast<uint64_t>(l.host_size);
  s.each = call.count / members / unit * unit;
  s.rest = call.count - s.each * members;
  return s;
}

void add_call(const Call& call, const Layout& l, std::vector<Stage>& stages) {
  const Shares s = shares_of(call, l);
  Reduction plain = call.reduction;
  plain.factor = 1.0;  // the first stage has applied it
  const auto reduce_again = [&](std::byte* at, uint64_t count) {
    if (stages[1].reach == Reach::kAcross)
      stages[1].calls.push_back({CallKind::kAllReduce, at, at, count, plain});
  };
  if (s.each > 0) {
    std::byte* const own = call.out + s.offset(static_cast<uint64_t>(l.place));
    stages[0].calls.push_back({CallKind::kReduceScatter, call.in, own, s.each, call.reduction});
    reduce_again(own, s.each);
    stages[2].calls.push_back({CallKind::kAllGather, own, call.out, s.each * s.element});
  }
  if (s.rest == 0) return;
  const uint64_t at = s.rest_offset(l);
  stages[0].calls.push_back(
      {CallKind::kAllReduce, call.in + at, call.out + at, s.rest, call.reduction});
  reduce_again(call.out + at, s.rest);
}

}  // namespace

Layout layout_of(const HostMembers& hosts, int me) {
  Layout l;
  l.host_count = static_cast<int>(hosts.size());
  for (size_t host = 0; host < hosts.size(); ++host) {
    const auto found = std::find(hosts[host].begin(), hosts[host].end(), me);
    if (found == hosts[host].end()) continue;
    const auto place = static_cast<size_t>(found - hosts[host].begin());
    l.host = static_cast<int>(host);
    l.host_size = static_cast<int>(hosts[host].size());
    l.place = static_cast<int>(place);
    l.host_leader = hosts[host][0];
    l.across_leader = hosts[0][place];
  }
  return l;
}

bool zero_is_neutral(const Reduction& reduction) {
  const bool is_unsigned = plain_numeric(reduction).dtype == DType::kUint8;
  return reduction.op == Reduction::Op::kSum ||
         (reduction.op == Reduction::Op::kMax && is_unsigned);
}

std::vector<Stage> stages_of(std::vector<Call> calls, Levels levels, const Layout& layout) {
  if (levels == Levels::kNone) return {{Reach::kAll, "NCCL", std::move(calls)}};
  const bool is_torus = levels == Levels::kTorus;
  std::vector<Stage> stages = {
      {Reach::kHost, "NCCL_REDUCESCATTER", {}},
      {is_torus ? Reach::kAcross : Reach::kHostMemory, is_torus ? "NCCL_ALLREDUCE" : "STAGING", {}},
      {Reach::kHost, "NCCL_ALLGATHER", {}}};
  for (const Call& call : calls) add_call(call, layout, stages);
  if (!is_torus) stages[1].calls = std::move(calls);
  if (stages[2].calls.empty()) {  // no shares: few elements
    stages[0].activity = "NCCL_ALLREDUCE";
    stages.pop_back();
  }
  return stages;
}

void make_middle(const std::vector<Call>& calls, const Layout& layout, Work& work) {
  work.reset(WorkKind::kReduce);
  const auto members = static_cast<uint64_t>(layout.host_size);
  const auto me = static_cast<uint64_t>(layout.place);
  for (const Call& call : calls) {
    const Shares s = shares_of(call, layout);
    Run& run = work.next_run();
    run.numeric = plain_numeric(call.reduction);
    // Slices of all shares in turn: each part has work for every member.
    const uint64_t slice = std::max<uint64_t>(kPartBytes / s.element / members, 1);
    for (uint64_t first = 0; first < s.each; first += slice) {
      for (uint64_t share = 0; share < members; ++share) {
        std::byte* const at =
            share == me ? call.out + s.offset(share) + first * s.element : nullptr;
        run.add(at, at, std::min(slice, s.each - first));
      }
    }
    if (s.rest == 0) continue;
    std::byte* const rest = call.out + s.rest_offset(layout);
    run.add(me == 0 ? rest : nullptr, rest, s.rest);  // all have it; it counts once per host
  }
}

}  // namespace hvd::collective::gpu
