#include "suites/suites.h"

#include <algorithm>
#include <cstdlib>

#include "error.h"
#include "roof.h"

namespace hvd::bench {
namespace {

constexpr size_t kPageBytes = 4096;

}  // namespace

std::string Bench::title(const std::string& rest) const {
  return "np=" + std::to_string(world.size()) + " " + rest;
}

PrivateBuffer::PrivateBuffer(size_t count) : count_(count) {
  const size_t bytes = (count * sizeof(float) + kPageBytes - 1) / kPageBytes * kPageBytes;
  data_.reset(static_cast<float*>(std::aligned_alloc(kPageBytes, bytes)));
  if (data_ == nullptr) throw BenchError("no memory for " + std::to_string(bytes) + " bytes");
  std::fill_n(data_.get(), count, 0.0F);
}

void fill(std::span<float> data, int rank) {
  for (size_t i = 0; i < data.size(); ++i) data[i] = check_value(rank, i);
}

void verify(std::span<const float> data, const std::function<float(size_t)>& expected,
            const std::string& who) {
  for (size_t i = 0; i < data.size(); ++i) {
    if (data[i] == expected(i)) continue;
    throw BenchError(who + ": element " + std::to_string(i) + " of " + std::to_string(data.size()) +
                     " is " + std::to_string(data[i]) + ", expected " +
                     std::to_string(expected(i)));
  }
}

std::function<void()> allreduce_check(const World& world, std::span<float> data,
                                      std::function<void(int)> run, std::string who) {
  const int rank = world.rank();
  const int size = world.size();
  return [=] {
    const auto expected = [size](size_t i) {
      float sum = 0;
      for (int r = 0; r < size; ++r) sum += check_value(r, i);
      return sum;
    };
    fill(data, rank);
    run(1);
    verify(data, expected, who);
    std::fill(data.begin(), data.end(), 0.0F);
  };
}

Contestant allreduce_contestant(const World& world, Entrant entrant, std::span<float> data,
                                std::function<void(int)> run) {
  auto check = allreduce_check(world, data, run, entrant.name);
  return {.entrant = std::move(entrant), .run = std::move(run), .check = std::move(check)};
}

Contestant roof(const Bench& bench, std::span<float> data) {
  return {.entrant = {.name = "roof", .role = Role::kLimit},
          .run = repeated([data, shares = bench.world.size()] {
            reduce_like_an_allreduce(data.data(), data.size(), shares);
          }),
          .check = {}};
}

}  // namespace hvd::bench
