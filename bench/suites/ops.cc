// The other operations, prepared, against the MPI call of the same meaning. `bytes` is the size of
// one rank's input; broadcast works in place from rank 0.
#include <algorithm>
#include <string>

#include "suites/suites.h"

namespace hvd::bench {
namespace {

constexpr size_t kSizes[] = {4 << 10, 64 << 10, 1 << 20, 16 << 20};

// One kind of operation: what a rank holds afterwards, and MPI's call for it.
struct Kind {
  const char* name;
  hvd_kind code;
  size_t (*output_count)(size_t count, size_t size);
  float (*expected)(size_t i, size_t count, int rank, int size);
  void (*mpi)(const MpiPeer& peer, float* input, float* output, size_t count);
};

float sum_at(size_t i, int size) {
  float sum = 0;
  for (int r = 0; r < size; ++r) sum += check_value(r, i);
  return sum;
}

constexpr Kind kKinds[] = {
    {"allgather", HVD_ALLGATHER, [](size_t count, size_t size) { return count * size; },
     [](size_t i, size_t count, int, int) {
       return check_value(static_cast<int>(i / count), i % count);
     },
     [](const MpiPeer& peer, float* input, float* output, size_t count) {
       peer.allgather(input, output, count);
     }},
    {"broadcast", HVD_BROADCAST, [](size_t count, size_t) { return count; },
     [](size_t i, size_t, int, int) { return check_value(0, i); },
     [](const MpiPeer& peer, float*, float* output, size_t count) {
       peer.broadcast(output, count);
     }},
    {"alltoall", HVD_ALLTOALL, [](size_t count, size_t) { return count; },
     [](size_t i, size_t count, int rank, int size) {
       const size_t share = count / size;
       return check_value(static_cast<int>(i / share), rank * share + i % share);
     },
     [](const MpiPeer& peer, float* input, float* output, size_t count) {
       peer.alltoall(input, output, count);
     }},
    {"reducescatter", HVD_REDUCESCATTER, [](size_t count, size_t size) { return count / size; },
     [](size_t i, size_t count, int rank, int size) {
       return sum_at(rank * (count / size) + i, size);
     },
     [](const MpiPeer& peer, float* input, float* output, size_t count) {
       peer.reducescatter(input, output, count);
     }},
};

std::function<void()> check_of(const Bench& bench, const Kind& kind, std::span<float> input,
                               std::span<float> output, std::function<void(int)> run,
                               std::string who) {
  const int rank = bench.world.rank();
  const int size = bench.world.size();
  return [=] {
    std::fill(output.begin(), output.end(), -1.0F);
    fill(input, rank);  // last: a broadcast has one buffer for both
    run(1);
    const auto expected = [&](size_t i) { return kind.expected(i, input.size(), rank, size); };
    verify(output, expected, who);
  };
}

// The buffers of one case, and our operation on them. Equal shares for every rank.
struct Field {
  Field(const Bench& bench, const Kind& kind, size_t bytes)
      : count(bytes / sizeof(float) / bench.world.size() * bench.world.size()),
        in(count),
        out(kind.output_count(count, bench.world.size())),
        output(out.data(), out.size()),
        input(kind.code == HVD_BROADCAST ? output : std::span<float>(in.data(), count)),
        request(kind.code, {.name = "bench." + std::string(kind.name) + std::to_string(bytes),
                            .count = count,
                            .input = input.data(),
                            .output = output.data()}),
        prepared(std::span(&request.get(), 1)) {}

  size_t count;
  PrivateBuffer in;
  PrivateBuffer out;
  std::span<float> output;
  std::span<float> input;
  Request request;
  Prepared prepared;
};

Contestant contestant(const Bench& bench, const Kind& kind, const Field& field, Entrant entrant,
                      std::function<void(int)> run) {
  auto check =
      check_of(bench, kind, field.input, field.output, run, entrant.name + " " + kind.name);
  return {.entrant = std::move(entrant), .run = std::move(run), .check = std::move(check)};
}

CaseReadings measure_kind(const Bench& bench, const Kind& kind, size_t bytes) {
  const Field field(bench, kind, bytes);
  Contest contest{.name = bench.title(kind.name), .bytes = bytes, .contestants = {}};
  contest.name += " bytes=" + std::to_string(bytes);
  contest.contestants.push_back(contestant(bench, kind, field, {"prepared", Role::kOurs},
                                           repeated([&field] { field.prepared.run(); })));
  contest.contestants.push_back(contestant(
      bench, kind, field, {bench.mpi.name(), Role::kPeer}, repeated([&bench, &kind, &field] {
        kind.mpi(bench.mpi, field.input.data(), field.output.data(), field.count);
      })));
  return measure(bench.world, bench.placement, contest, bench.effort);
}

}  // namespace

std::vector<CaseReadings> run_ops(const Bench& bench) {
  std::vector<CaseReadings> cases;
  for (const Kind& kind : kKinds) {
    for (const size_t bytes : kSizes) cases.push_back(measure_kind(bench, kind, bytes));
  }
  return cases;
}

}  // namespace hvd::bench
