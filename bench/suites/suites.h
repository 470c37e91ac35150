// suites.h - the suites of hvd_bench_<mpi>, and what they share. Collective; one thread.
#pragma once

#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "contest.h"
#include "gloo_peer.h"
#include "mpi_peer.h"
#include "ours.h"

namespace hvd::bench {

struct Bench {
  const World& world;
  Ours& ours;
  const MpiPeer& mpi;
  GlooPeer* gloo;  // null: not in this program or not in this run
  Placement& placement;
  Effort effort;
  enum class Depth { kFull, kQuick } depth;
  int cores;

  bool oversubscribed() const { return world.size() > cores; }
  std::string title(const std::string& rest) const;  // "np=2 " + rest
};

std::vector<CaseReadings> run_allreduce(const Bench& bench);
std::vector<CaseReadings> run_ops(const Bench& bench);
std::vector<CaseReadings> run_gradients(const Bench& bench);

// ---- data ---------------------------------------------------------------------------------------

// Page-aligned private memory, zeroed (so touched). Operations are timed on zeros: sums stay
// finite.
class PrivateBuffer {
 public:
  explicit PrivateBuffer(size_t count);
  float* data() const { return data_.get(); }
  size_t size() const { return count_; }

 private:
  struct Free {
    void operator()(float* data) const { std::free(data); }
  };
  std::unique_ptr<float, Free> data_;
  size_t count_;
};

// Element i of rank r in a check: a small whole number, so that sums are exact in every order.
inline float check_value(int rank, size_t i) {
  return static_cast<float>((i + 31 * static_cast<size_t>(rank)) % 251);
}
void fill(std::span<float> data, int rank);
// Throws BenchError unless data[i] == expected(i) everywhere; `who` names the contestant.
void verify(std::span<const float> data, const std::function<float(size_t)>& expected,
            const std::string& who);

// Check of an allreduce in place of `data`: fill, run once, verify, zero again.
std::function<void()> allreduce_check(const World& world, std::span<float> data,
                                      std::function<void(int)> run, std::string who);
Contestant allreduce_contestant(const World& world, Entrant entrant, std::span<float> data,
                                std::function<void(int)> run);
Contestant roof(const Bench& bench, std::span<float> data);

// Gloo takes about one scheduler tick per operation: every fourth round is enough to rank it.
inline constexpr int kGlooEvery = 4;

}  // namespace hvd::bench
