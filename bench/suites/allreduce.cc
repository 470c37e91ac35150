// One allreduce after the other at every size, float32 sum in place; and the tail of the smallest.
#include <array>
#include <string>

#include "suites/suites.h"

namespace hvd::bench {
namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;
// Below this the roof measures loop overhead, not memory.
constexpr size_t kRoofBytes = 256 * kKiB;
// Up to here the time is that of one exchange of cache lines.
constexpr size_t kExchangeBytes = 64;

std::vector<size_t> sizes_of(const Bench& bench) {
  const bool quick = bench.depth == Bench::Depth::kQuick;
  if (!bench.oversubscribed()) {
    std::vector<size_t> sizes = {4,        16,        64,        256,        kKiB,
                                 4 * kKiB, 16 * kKiB, 64 * kKiB, 256 * kKiB, 1 * kMiB,
                                 4 * kMiB, 16 * kMiB, 64 * kMiB};
    if (!quick) sizes.push_back(256 * kMiB);
    return sizes;
  }
  if (quick) return {4, 4 * kKiB, 64 * kKiB, 1 * kMiB};
  return {4, 256, kKiB, 4 * kKiB, 16 * kKiB, 64 * kKiB, 256 * kKiB, 1 * kMiB, 16 * kMiB, 64 * kMiB};
}

// Holds what the contestants of one size point to.
struct Field {
  Field(const Bench& bench, size_t bytes)
      : count(bytes / sizeof(float)),
        buffer(count),
        own(buffer.data(), count),
        shared(bench.ours.bare_shared_floats(count), count),
        by_name(HVD_ALLREDUCE, tensor("bench.by_name.")),
        for_prepared(HVD_ALLREDUCE, tensor("bench.prepared.")),
        prepared(std::span(&for_prepared.get(), 1)) {}

  Request::Tensor tensor(const std::string& prefix) const {
    return {.name = prefix + std::to_string(count),
            .count = count,
            .input = buffer.data(),
            .output = buffer.data()};
  }

  size_t count;
  PrivateBuffer buffer;
  std::span<float> own;
  std::span<float> shared;
  Request by_name;
  Request for_prepared;
  Prepared prepared;
};

Contestant layer(const Bench& bench, std::string name, std::span<float> data) {
  collective::shared_memory::BareGroup& group = bench.ours.bare();
  return allreduce_contestant(
      bench.world, {.name = std::move(name), .role = Role::kOurs}, data, repeated([&group, data] {
        expect_ok(group.allreduce(data.data(), data.size(), DType::kFloat32, ReduceOp::kSum),
                  "bare allreduce");
      }));
}

Contestant negotiated_by_name(const Bench& bench, const Field& field) {
  return allreduce_contestant(
      bench.world, {.name = "by name", .role = Role::kOurs}, field.own,
      repeated([&field] { expect_ok(hvd_run(&field.by_name.get(), HVD_FOREVER), "run by name"); }));
}

Contestant negotiated_prepared(const Bench& bench, const Field& field) {
  return allreduce_contestant(bench.world, {.name = "prepared", .role = Role::kOurs}, field.own,
                              repeated([&field] { field.prepared.run(); }));
}

Contestant mpi(const Bench& bench, std::span<float> data) {
  const MpiPeer& peer = bench.mpi;
  return allreduce_contestant(
      bench.world, {.name = peer.name(), .role = Role::kPeer}, data,
      repeated([&peer, data] { peer.allreduce(data.data(), data.size()); }));
}

std::vector<Contestant> contestants(const Bench& bench, const Field& field) {
  std::vector<Contestant> all = {
      layer(bench, "layer", field.own), layer(bench, "layer shared", field.shared),
      negotiated_by_name(bench, field), negotiated_prepared(bench, field), mpi(bench, field.own)};
  if (bench.gloo != nullptr) {
    all.push_back(
        allreduce_contestant(bench.world, {.name = "gloo", .role = Role::kPeer}, field.own,
                             repeated(bench.gloo->allreduce(field.own.data(), field.count))));
    all.back().every = kGlooEvery;
  }
  if (field.count * sizeof(float) >= kRoofBytes) all.push_back(roof(bench, field.own));
  return all;
}

std::vector<CaseReadings> tail(const Bench& bench) {
  const Field field(bench, sizeof(float));
  Effort effort = bench.effort;
  effort.seconds_per_case = bench.depth == Bench::Depth::kQuick ? 1 : 3;
  return measure_tail(bench.world,
                      {.name = bench.title("bytes=4"),
                       .bytes = sizeof(float),
                       .contestants = {layer(bench, "layer", field.own),
                                       negotiated_prepared(bench, field), mpi(bench, field.own)}},
                      effort);
}

}  // namespace

std::vector<CaseReadings> run_allreduce(const Bench& bench) {
  std::vector<CaseReadings> cases;
  for (const size_t bytes : sizes_of(bench)) {
    const Field field(bench, bytes);
    const Contest contest{
        .name = bench.title("bytes=" + std::to_string(bytes)),
        .bytes = bytes,
        .contestants = contestants(bench, field),
        .limited_by_exchange = bytes <= kExchangeBytes && !bench.oversubscribed()};
    cases.push_back(measure(bench.world, bench.placement, contest, bench.effort));
  }
  for (CaseReadings& c : tail(bench)) cases.push_back(std::move(c));
  return cases;
}

}  // namespace hvd::bench
