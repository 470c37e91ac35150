// The gradients of one ResNet-50 step, 161 tensors: one group, single submissions, shared buffers;
// against the classic fusion buffer (pack, allreduce, unpack) and single calls of MPI.
#include <algorithm>
#include <cstring>
#include <deque>
#include <string>

#include "resnet50.h"
#include "suites/suites.h"

namespace hvd::bench {
namespace {

using Tensors = std::vector<std::span<float>>;

// 161 tensors, each at its own page-aligned address, as a framework allocates them.
struct PrivateTensors {
  PrivateTensors() {
    for (const size_t count : resnet50_element_counts()) {
      buffers.emplace_back(count);
      tensors.emplace_back(buffers.back().data(), count);
    }
  }
  std::deque<PrivateBuffer> buffers;
  Tensors tensors;
};

struct SharedTensors {
  SharedTensors() {
    for (const size_t count : resnet50_element_counts()) {
      buffers.emplace_back(count);
      tensors.emplace_back(buffers.back().data(), count);
    }
  }
  std::deque<SharedBuffer> buffers;
  Tensors tensors;
};

struct Requests {
  Requests(const std::string& prefix, const Tensors& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      owners.emplace_back(HVD_ALLREDUCE, Request::Tensor{.name = prefix + std::to_string(i),
                                                         .count = tensors[i].size(),
                                                         .input = tensors[i].data(),
                                                         .output = tensors[i].data()});
      requests.push_back(owners.back().get());
    }
  }
  std::deque<Request> owners;
  std::vector<hvd_request> requests;
};

void submit_one_by_one(const std::vector<hvd_request>& requests, std::vector<hvd_handle>& handles) {
  for (size_t i = 0; i < requests.size(); ++i) {
    expect_ok(hvd_submit(&requests[i], &handles[i]), "submit");
  }
  expect_ok(hvd_wait_many(handles.data(), handles.size(), HVD_FOREVER), "wait for many");
  for (const hvd_handle handle : handles) expect_ok(hvd_release(handle), "release");
}

// The scheme of the original: one copy in, one large allreduce, one copy out.
template <typename Allreduce>
void fused(const Tensors& tensors, float* fusion_buffer, Allreduce allreduce) {
  float* at = fusion_buffer;
  for (const std::span<float> tensor : tensors) {
    std::memcpy(at, tensor.data(), tensor.size_bytes());
    at += tensor.size();
  }
  allreduce(fusion_buffer, static_cast<size_t>(at - fusion_buffer));
  at = fusion_buffer;
  for (const std::span<float> tensor : tensors) {
    std::memcpy(tensor.data(), at, tensor.size_bytes());
    at += tensor.size();
  }
}

Contestant contestant(const Bench& bench, Entrant entrant, const Tensors& tensors,
                      std::function<void(int)> run) {
  const int rank = bench.world.rank();
  const int size = bench.world.size();
  auto check = [&tensors, rank, size, run, who = entrant.name] {
    for (const std::span<float> tensor : tensors) fill(tensor, rank);
    run(1);
    for (const std::span<float> tensor : tensors) {
      const auto expected = [size](size_t i) {
        float sum = 0;
        for (int r = 0; r < size; ++r) sum += check_value(r, i);
        return sum;
      };
      verify(tensor, expected, who);
      std::fill(tensor.begin(), tensor.end(), 0.0F);
    }
  };
  return {.entrant = std::move(entrant), .run = std::move(run), .check = std::move(check)};
}

constexpr size_t kFusionElements = (128 << 20) / sizeof(float);

// Everything the contestants point to.
struct Field {
  PrivateTensors owned;
  SharedTensors in_shared_memory;
  const Tensors& tensors = owned.tensors;
  const Tensors& shared = in_shared_memory.tensors;
  Requests grouped{"bench.group.", tensors};
  Requests single{"bench.single.", tensors};
  Requests in_place{"bench.shared.", shared};
  Prepared group{grouped.requests};
  Prepared shared_group{in_place.requests};
  std::vector<hvd_handle> handles = std::vector<hvd_handle>(kResnet50Tensors);
  PrivateBuffer fusion{kFusionElements};
};

void add_ours(const Bench& bench, Field& field, std::vector<Contestant>& all) {
  all.push_back(contestant(bench, {"group", Role::kOurs}, field.tensors,
                           repeated([&field] { field.group.run(); })));
  all.push_back(contestant(bench, {"separate", Role::kOurs}, field.tensors, repeated([&field] {
                             submit_one_by_one(field.single.requests, field.handles);
                           })));
  all.push_back(contestant(bench, {"group shared", Role::kOurs}, field.shared,
                           repeated([&field] { field.shared_group.run(); })));
}

void add_mpi(const Bench& bench, Field& field, std::vector<Contestant>& all) {
  const MpiPeer& mpi = bench.mpi;
  const auto allreduce = [&mpi](float* data, size_t count) { mpi.allreduce(data, count); };
  all.push_back(contestant(
      bench, {mpi.name() + " fused", Role::kPeer}, field.tensors,
      repeated([&field, allreduce] { fused(field.tensors, field.fusion.data(), allreduce); })));
  all.push_back(contestant(bench, {mpi.name() + " single", Role::kPeer}, field.tensors,
                           repeated([&field, allreduce] {
                             for (const std::span<float> tensor : field.tensors)
                               allreduce(tensor.data(), tensor.size());
                           })));
}

void add_gloo(const Bench& bench, Field& field, std::vector<Contestant>& all) {
  if (bench.gloo == nullptr) return;
  const auto allreduce = bench.gloo->allreduce(field.fusion.data(), kResnet50Elements);
  all.push_back(
      contestant(bench, {"gloo fused", Role::kPeer}, field.tensors, repeated([&field, allreduce] {
                   fused(field.tensors, field.fusion.data(), [&](float*, size_t) { allreduce(); });
                 })));
  all.back().every = kGlooEvery;
}

}  // namespace

std::vector<CaseReadings> run_gradients(const Bench& bench) {
  Field field;
  Contest contest{.name = bench.title("resnet50"), .bytes = 0, .contestants = {}};
  add_ours(bench, field, contest.contestants);
  add_mpi(bench, field, contest.contestants);
  add_gloo(bench, field, contest.contestants);
  contest.contestants.push_back(roof(bench, std::span(field.fusion.data(), kResnet50Elements)));

  CaseReadings readings = measure(bench.world, bench.placement, contest, bench.effort);
  readings.unit = "ms";
  for (Round& round : readings.rounds) {
    for (double& value : round.values) value /= 1000;
  }
  return {std::move(readings)};
}

}  // namespace hvd::bench
