// process_ranks.h - runs a test function in `np` real processes that form one job over the C ABI.
// The parent forks before any thread exists and never initializes the library itself; so a test
// that uses this must not start threads or call hvd_init outside the function. In the function
// every EXPECT_ and ASSERT_ of GoogleTest works: failures travel to the parent as text. ASSERT_
// ends the child from any depth of its main thread; other threads use EXPECT_ only. Children that
// outlive the deadline are killed, with a message naming the rank and its last phase.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "horovod/hvd.h"

namespace hvd::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kTimeFactor = 20;  // instrumented code on busy machines
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr int kTimeFactor = 20;
#else
inline constexpr int kTimeFactor = 1;
#endif
#else
inline constexpr int kTimeFactor = 1;
#endif

inline constexpr int kMaxTestRanks = 16;
inline constexpr int kValueCount = 64;

// Numbers that parent and children share; a wait sleeps until some process sets a value.
// Thread: any, in any of the processes.
class SharedBoard {
 public:
  void set(int index, int64_t value);
  void add(int index, int64_t value);
  int64_t get(int index) const { return values_[index].load(std::memory_order_acquire); }
  // False: the time passed first.
  bool wait_at_least(int index, int64_t value, std::chrono::milliseconds timeout) const;
  void set_phase(int rank, std::string_view text);
  std::string phase(int rank) const { return phases_[rank]; }

 private:
  void notify();

  std::atomic<int64_t> values_[kValueCount] = {};
  std::atomic<uint32_t> changes_ = 0;  // futex word; counts set() and add() of all processes
  char phases_[kMaxTestRanks][192] = {};
};

struct ProcessOptions {
  enum class Init { kByHarness, kByFunction };  // kByHarness: also shuts down at the end
  Init init = Init::kByHarness;
  std::chrono::milliseconds deadline{30000};  // multiplied by the sanitizer factor, at most 200 s
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::vector<int32_t>> process_sets;
  bool dynamic_process_sets = false;
  hvd_progress progress = HVD_PROGRESS_DEFAULT;
  std::map<int, int> expected_signals;  // rank -> signal that ends it
  // Runs in the parent while the children do their work.
  std::function<void(class Supervisor&)> supervise;
};

// A child's view of itself.
class RankProcess {
 public:
  RankProcess(int rank, int size, std::string job_id, const ProcessOptions& options,
              SharedBoard& board)
      : rank_(rank), size_(size), job_id_(std::move(job_id)), options_(options), board_(board) {}

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& job_id() const { return job_id_; }
  SharedBoard& board() { return board_; }
  // Remembered for the message when this rank hangs or dies.
  void phase(std::string_view text) { board_.set_phase(rank_, text); }
  // hvd_init with this rank's place in the job and the sets of the options.
  hvd_status init() { return init_as(rank_, size_, 0); }
  // The same for another world: tests of init -> shutdown -> init. epoch 0: counted by the library.
  hvd_status init_as(int rank, int size, uint64_t epoch);

 private:
  int rank_, size_;
  std::string job_id_;
  const ProcessOptions& options_;
  SharedBoard& board_;
};

// The parent's hold on the children, for tests that stop or kill them.
class Supervisor {
 public:
  Supervisor(std::vector<pid_t> pids, SharedBoard& board) : pids_(std::move(pids)), board_(board) {}

  pid_t pid(int rank) const { return pids_[rank]; }
  SharedBoard& board() { return board_; }
  void send_signal(int rank, int signal);
  // Blocks until the kernel reports the rank as stopped.
  void stop(int rank);
  void resume(int rank);
  // kill -9; blocks until the rank is dead.
  void kill(int rank);

 private:
  std::vector<pid_t> pids_;
  SharedBoard& board_;
};

struct RankOutcome {
  int exit_code = -1;  // -1: ended by `signal`
  int signal = 0;
  bool timed_out = false;
  std::string failures, last_phase, stderr_text;
};

// Fails the current test for every rank that failed, ended unexpectedly or missed the deadline.
std::vector<RankOutcome> run_processes(int np, const std::function<void(RankProcess&)>& function,
                                       const ProcessOptions& options = {});
// The same without a judgement: for tests of this harness.
std::vector<RankOutcome> observe_processes(int np,
                                           const std::function<void(RankProcess&)>& function,
                                           const ProcessOptions& options = {});
// What is wrong with an outcome; empty: nothing.
std::string problem_of(int rank, const RankOutcome& outcome, const ProcessOptions& options);

// HVD_TEST_MAX_RANKS of the build, or 8: instrumented builds stop at fewer ranks.
int max_test_ranks();

int64_t monotonic_ns();

}  // namespace hvd::testing
