// line.cc - libhvd_bench_line: the round trip of a cache line between two processes, for ctypes.
// A library of its own, so that the Python benchmarks need nothing of the C++ ones.
#include <immintrin.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>

namespace {

// Short bursts, best of many: a burst that another process interrupts must not count.
constexpr int kBursts = 30;
constexpr int kTripsPerBurst = 20;

void await(const std::atomic<int>& ball, int value) {
  // Yields now and then: the other process may have lost its core to somebody.
  for (int spins = 1; ball.load(std::memory_order_acquire) != value; ++spins) {
    _mm_pause();
    if (spins % 1000 == 0) sched_yield();
  }
}

double serve(std::atomic<int>& ball) {
  double best_ns = 1e9;
  for (int burst = 0; burst < kBursts; ++burst) {
    const auto start = std::chrono::steady_clock::now();
    for (int trip = 0; trip < kTripsPerBurst; ++trip) {
      const int i = burst * kTripsPerBurst + trip;
      ball.store(2 * i + 1, std::memory_order_release);
      await(ball, 2 * i + 2);
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    best_ns = std::min(best_ns, took.count() / kTripsPerBurst);
  }
  ball.store(0, std::memory_order_release);  // the other side has made its last move
  return best_ns;
}

void answer(std::atomic<int>& ball) {
  for (int i = 0; i < kBursts * kTripsPerBurst; ++i) {
    await(ball, 2 * i + 1);
    ball.store(2 * i + 2, std::memory_order_release);
  }
}

}  // namespace

// `line`: zeroed memory that both processes map, 64 bytes of it. One side serves and gets the round
// trip in nanoseconds, the other answers and gets 0. A barrier must separate two calls.
extern "C" __attribute__((visibility("default"))) double hvd_bench_round_trip_ns(void* line,
                                                                                 int serves) {
  auto& ball = *static_cast<std::atomic<int>*>(line);
  if (serves != 0) return serve(ball);
  answer(ball);
  return 0;
}
