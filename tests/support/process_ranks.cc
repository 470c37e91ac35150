#include "tests/support/process_ranks.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#define HVD_TEST_LEAK_CHECK 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HVD_TEST_LEAK_CHECK 1
#endif
#endif
#ifdef HVD_TEST_LEAK_CHECK
extern "C" int __lsan_do_recoverable_leak_check();
#endif

namespace hvd::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLongestDeadline{200000};

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written <= 0) return;  // the parent is gone: nobody is left to tell
    text.remove_prefix(static_cast<size_t>(written));
  }
}

std::string read_whole_file(int fd) {
  std::string text;
  char buffer[4096];
  ssize_t got = 0;
  for (off_t offset = 0; (got = ::pread(fd, buffer, sizeof(buffer), offset)) > 0; offset += got) {
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

// Sends failures of a child to the parent; makes ASSERT_ leave the test function from any depth.
class PipeListener : public ::testing::EmptyTestEventListener {
 public:
  explicit PipeListener(int fd) : fd_(fd), main_thread_(::gettid()) {}

  // Of this child: HasFailure() also remembers what failed in the parent before the fork.
  bool has_failed() const { return failed_.load(); }

  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    failed_.store(true);
    std::string text = result.file_name() != nullptr ? result.file_name() : "unknown file";
    text += ":" + std::to_string(result.line_number()) + ": " + result.message() + "\n";
    write_all(fd_, text);
    if (result.fatally_failed() && ::gettid() == main_thread_) {
      throw ::testing::AssertionException(result);
    }
  }

 private:
  int fd_;
  pid_t main_thread_;
  std::atomic<bool> failed_{false};
};

struct Child {
  pid_t pid = -1;
  int read_fd = -1;
  int write_fd = -1;
  int stderr_fd = -1;
  RankOutcome outcome;
};

void run_rank(RankProcess& rank, const ProcessOptions& options,
              const std::function<void(RankProcess&)>& function) {
  const bool harness_inits = options.init == ProcessOptions::Init::kByHarness;
  if (harness_inits) {
    rank.phase("init");
    ASSERT_EQ(rank.init(), HVD_OK) << hvd_last_error();
  }
  rank.phase("test function");
  function(rank);
  if (harness_inits) {
    rank.phase("shutdown");
    EXPECT_EQ(hvd_shutdown(), HVD_OK) << hvd_last_error();
  }
  rank.phase("done");
}

[[noreturn]] void child_main(RankProcess& rank, const ProcessOptions& options, int pipe_fd,
                             const std::function<void(RankProcess&)>& function) {
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  auto* listener = new PipeListener(pipe_fd);
  listeners.Append(listener);
  for (const auto& [name, value] : options.environment) ::setenv(name.c_str(), value.c_str(), 1);
  try {
    run_rank(rank, options, function);
  } catch (const ::testing::AssertionException&) {
    // Already reported.
  } catch (const std::exception& error) {
    write_all(pipe_fd, std::string("exception: ") + error.what() + "\n");
    ::_exit(1);
  }
  int code = listener->has_failed() ? 1 : 0;
#ifdef HVD_TEST_LEAK_CHECK
  if (code == 0 && __lsan_do_recoverable_leak_check() != 0) code = 23;
#endif
  std::fflush(nullptr);
  ::_exit(code);
}

std::string unique_job_id() {
  static int counter = 0;
  return "test-" + std::to_string(::getpid()) + "-" + std::to_string(++counter);
}

std::vector<Child> make_children(int np) {
  std::vector<Child> children(static_cast<size_t>(np));
  for (Child& child : children) {
    int fds[2] = {-1, -1};
    if (::pipe(fds) != 0) std::abort();
    child.read_fd = fds[0];
    child.write_fd = fds[1];
    child.stderr_fd = ::memfd_create("stderr", 0);
  }
  return children;
}

void fork_children(std::vector<Child>& children, const std::function<void(RankProcess&)>& function,
                   const ProcessOptions& options, SharedBoard& board) {
  const std::string job_id = unique_job_id();
  const int np = static_cast<int>(children.size());
  std::fflush(nullptr);  // or every child prints what is still buffered
  for (int r = 0; r < np; ++r) {
    Child& child = children[static_cast<size_t>(r)];
    child.pid = ::fork();
    if (child.pid != 0) continue;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(child.stderr_fd, STDERR_FILENO);
    for (Child& each : children) {
      ::close(each.read_fd);
      ::close(each.stderr_fd);
      if (&each != &child) ::close(each.write_fd);
    }
    RankProcess rank(r, np, job_id, options, board);
    child_main(rank, options, child.write_fd, function);
  }
  for (const Child& child : children) ::close(child.write_fd);  // so that a child's end is seen
}

// Reads failure texts until every child has closed its pipe or the deadline has passed.
void collect(std::vector<Child>& children, steady_clock::time_point deadline) {
  for (;;) {
    std::vector<pollfd> polls;
    std::vector<Child*> owners;
    for (Child& child : children) {
      if (child.read_fd < 0) continue;
      polls.push_back({child.read_fd, POLLIN, 0});
      owners.push_back(&child);
    }
    if (polls.empty()) return;
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0 ||
        ::poll(polls.data(), polls.size(), static_cast<int>(left.count())) == 0) {
      for (Child* child : owners) child->outcome.timed_out = true;
      return;
    }
    for (size_t i = 0; i < polls.size(); ++i) {
      if (polls[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t got = ::read(polls[i].fd, buffer, sizeof(buffer));
      if (got > 0) {
        owners[i]->outcome.failures.append(buffer, static_cast<size_t>(got));
      } else {
        ::close(std::exchange(owners[i]->read_fd, -1));
      }
    }
  }
}

void reap(Child& child) {
  if (child.outcome.timed_out) ::kill(child.pid, SIGKILL);
  int status = 0;
  ::waitpid(child.pid, &status, 0);
  if (WIFEXITED(status)) child.outcome.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) child.outcome.signal = WTERMSIG(status);
  if (child.read_fd >= 0) ::close(child.read_fd);
  child.outcome.stderr_text = read_whole_file(child.stderr_fd);
  ::close(child.stderr_fd);
}

milliseconds deadline_of(const ProcessOptions& options) {
  return std::min(options.deadline * kTimeFactor, kLongestDeadline);
}

}  // namespace

int max_test_ranks() {
  const char* text = std::getenv("HVD_TEST_MAX_RANKS");
  return text != nullptr ? std::atoi(text) : 8;
}

int64_t monotonic_ns() {
  return std::chrono::nanoseconds(steady_clock::now().time_since_epoch()).count();
}

void SharedBoard::set(int index, int64_t value) {
  values_[index].store(value, std::memory_order_release);
  notify();
}

void SharedBoard::add(int index, int64_t value) {
  values_[index].fetch_add(value, std::memory_order_acq_rel);
  notify();
}

void SharedBoard::notify() {
  changes_.fetch_add(1, std::memory_order_seq_cst);
  ::syscall(SYS_futex, &changes_, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

bool SharedBoard::wait_at_least(int index, int64_t value, milliseconds timeout) const {
  const auto deadline = steady_clock::now() + timeout;
  for (;;) {
    const uint32_t seen = changes_.load(std::memory_order_seq_cst);
    if (get(index) >= value) return true;
    const std::chrono::nanoseconds left = deadline - steady_clock::now();
    if (left.count() <= 0) return false;
    const timespec wait = {left.count() / 1000000000, left.count() % 1000000000};
    ::syscall(SYS_futex, &changes_, FUTEX_WAIT, seen, &wait, nullptr, 0);
  }
}

void SharedBoard::set_phase(int rank, std::string_view text) {
  char(&slot)[192] = phases_[rank];
  const size_t length = std::min(text.size(), sizeof(slot) - 1);
  std::memcpy(slot, text.data(), length);
  slot[length] = '\0';
}

hvd_status RankProcess::init_as(int rank, int size, uint64_t epoch) {
  std::vector<int32_t> ranks;
  std::vector<int32_t> sizes;
  for (const auto& set : options_.process_sets) {
    ranks.insert(ranks.end(), set.begin(), set.end());
    sizes.push_back(static_cast<int32_t>(set.size()));
  }
  hvd_init_options raw;
  hvd_init_options_init(&raw);
  raw.topology = {rank, size, rank, size, 0, 1};
  raw.job_id = job_id_.c_str();
  raw.epoch = epoch;
  raw.progress = options_.progress;
  raw.process_set_ranks = ranks.data();
  raw.process_set_sizes = sizes.data();
  raw.process_set_count = static_cast<int32_t>(sizes.size());
  raw.dynamic_process_sets = options_.dynamic_process_sets ? 1 : 0;
  return hvd_init(&raw);
}

void Supervisor::send_signal(int rank, int signal) { ::kill(pids_[rank], signal); }

void Supervisor::stop(int rank) {
  send_signal(rank, SIGSTOP);
  siginfo_t info = {};
  ::waitid(P_PID, static_cast<id_t>(pids_[rank]), &info, WSTOPPED | WEXITED | WNOWAIT);
}

void Supervisor::kill(int rank) {
  send_signal(rank, SIGKILL);
  siginfo_t info = {};
  ::waitid(P_PID, static_cast<id_t>(pids_[rank]), &info, WEXITED | WNOWAIT);
}

void Supervisor::resume(int rank) { send_signal(rank, SIGCONT); }

std::string problem_of(int rank, const RankOutcome& outcome, const ProcessOptions& options) {
  const auto expected = options.expected_signals.find(rank);
  const bool as_expected = expected == options.expected_signals.end()
                               ? outcome.exit_code == 0
                               : outcome.signal == expected->second;
  if (as_expected && !outcome.timed_out && outcome.failures.empty()) return {};
  std::string text = "rank " + std::to_string(rank);
  if (outcome.timed_out) {
    text += " did not finish within " + std::to_string(deadline_of(options).count()) + " ms";
  } else if (outcome.signal != 0) {
    text += " ended by signal " + std::to_string(outcome.signal);
  } else {
    text += " exited with " + std::to_string(outcome.exit_code);
  }
  text += "; last phase: '" + outcome.last_phase + "'\n" + outcome.failures;
  if (!outcome.stderr_text.empty()) text += "stderr of this rank:\n" + outcome.stderr_text;
  return text;
}

std::vector<RankOutcome> run_processes(int np, const std::function<void(RankProcess&)>& function,
                                       const ProcessOptions& options) {
  auto outcomes = observe_processes(np, function, options);
  for (size_t r = 0; r < outcomes.size(); ++r) {
    const std::string problem = problem_of(static_cast<int>(r), outcomes[r], options);
    if (!problem.empty()) ADD_FAILURE() << problem;
  }
  return outcomes;
}

std::vector<RankOutcome> observe_processes(int np,
                                           const std::function<void(RankProcess&)>& function,
                                           const ProcessOptions& options) {
  void* memory = ::mmap(nullptr, sizeof(SharedBoard), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || np > kMaxTestRanks) {
    ADD_FAILURE() << "cannot set up " << np << " ranks";
    return {};
  }
  auto* board = new (memory) SharedBoard;
  const auto deadline = steady_clock::now() + deadline_of(options);
  std::vector<Child> children = make_children(np);
  fork_children(children, function, options, *board);

  std::vector<pid_t> pids;
  for (const Child& child : children) pids.push_back(child.pid);
  Supervisor supervisor(pids, *board);
  if (options.supervise) options.supervise(supervisor);
  collect(children, deadline);

  std::vector<RankOutcome> outcomes;
  for (int r = 0; r < np; ++r) {
    Child& child = children[static_cast<size_t>(r)];
    child.outcome.last_phase = board->phase(r);
    reap(child);
    outcomes.push_back(std::move(child.outcome));
  }
  ::munmap(memory, sizeof(SharedBoard));
  return outcomes;
}

}  // namespace hvd::testing
