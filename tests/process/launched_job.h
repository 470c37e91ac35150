// launched_job.h - one real run of horovodrun (or of another launcher): started, fed, watched and
// waited for by a test.
// Nothing here sleeps: every wait ends with an event, and fails the test when the event does not
// come.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace hvd::test {

// More than any wait here needs on a busy machine.
inline constexpr std::chrono::seconds kPatience{60};

inline int poll_milliseconds(std::chrono::steady_clock::time_point deadline) {
  const auto left = deadline - std::chrono::steady_clock::now();
  const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return rounded > 0 ? static_cast<int>(rounded) : 0;
}

// CTest names the build directory; by hand, it is one above this program.
inline std::string launcher_path() {
  if (const char* directory = std::getenv("HVD_BUILD_DIR")) {
    return std::string(directory) + "/horovodrun";
  }
  auto directory = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  while (directory.has_relative_path() && !std::filesystem::exists(directory / "horovodrun")) {
    directory = directory.parent_path();
  }
  return (directory / "horovodrun").string();
}

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hvd_launch_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  std::string operator/(std::string_view name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// Any process, named by its id while it surely lives; the watch stays true when the number is
// reused.
class ProcessWatch {
 public:
  explicit ProcessWatch(pid_t pid) : fd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}
  int fd() const { return fd_.get(); }
  bool is_valid() const { return fd_.valid(); }
  bool ends_within(std::chrono::milliseconds span) const {
    pollfd watch{fd_.get(), POLLIN, 0};
    return ::poll(&watch, 1, static_cast<int>(span.count())) == 1;
  }
  bool ends() const { return ends_within(kPatience); }
  void send(int number) const { ::syscall(SYS_pidfd_send_signal, fd_.get(), number, nullptr, 0); }

 private:
  UniqueFd fd_;
};

class LaunchedJob {
 public:
  struct Settings {
    std::vector<std::string> environment = {};  // NAME=value, added to ours
    std::string input = {};                     // standard input, then end of file
    std::string program = launcher_path();
  };

  explicit LaunchedJob(std::vector<std::string> arguments)
      : LaunchedJob(std::move(arguments), {}) {}
  LaunchedJob(std::vector<std::string> arguments, const Settings& settings) {
    auto [in_read, in_write] = make_pipe();
    auto [out_read, out_write] = make_pipe();
    auto [err_read, err_write] = make_pipe();
    EXPECT_EQ(::write(in_write.get(), settings.input.data(), settings.input.size()),
              static_cast<ssize_t>(settings.input.size()));
    arguments.insert(arguments.begin(), settings.program);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(in_read.get(), STDIN_FILENO);
      ::dup2(out_write.get(), STDOUT_FILENO);
      ::dup2(err_write.get(), STDERR_FILENO);
      execute(arguments, settings.environment);
    }
    started_at_ = std::chrono::steady_clock::now();
    watch_.emplace_back(pid_);
    out_pipe_ = std::move(out_read);
    err_pipe_ = std::move(err_read);
  }

  ~LaunchedJob() {
    if (!reaped_) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  LaunchedJob(const LaunchedJob&) = delete;
  LaunchedJob& operator=(const LaunchedJob&) = delete;

  // In a forked child: signals as a shell would give them.
  [[noreturn]] static void execute(std::vector<std::string>& arguments,
                                   const std::vector<std::string>& environment) {
    for (int number : {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGPIPE, SIGCHLD})
      ::signal(number, SIG_DFL);
    for (const std::string& entry : environment) {
      const size_t equals = entry.find('=');
      ::setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
    }
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    ::execv(pointers.front(), pointers.data());
    ::_exit(99);
  }

  pid_t pid() const { return pid_; }
  void send(int number) const { ::kill(pid_, number); }
  const std::string& out() const { return out_; }
  const std::string& err() const { return err_; }
  void close_out() { out_pipe_.reset(); }

  // Reads until standard output holds `count` of `text`.
  bool wait_for(std::string_view text, int count = 1) {
    return read_until([&] { return occurrences(out_, text) >= count; });
  }
  // The same for standard error.
  bool wait_for_error(std::string_view text, int count = 1) {
    return read_until([&] { return occurrences(err_, text) >= count; });
  }

  // The number after each `word` in standard output: "pid 17" -> 17.
  std::vector<pid_t> numbers_after(std::string_view word) const {
    std::vector<pid_t> numbers;
    for (size_t at = out_.find(word); at != std::string::npos; at = out_.find(word, at + 1)) {
      numbers.push_back(static_cast<pid_t>(std::atoi(out_.c_str() + at + word.size())));
    }
    return numbers;
  }

  // Reads all output and waits for the end. The exit code, or 1000 + signal.
  int wait() {
    EXPECT_TRUE(read_until([&] { return !out_pipe_.valid() && !err_pipe_.valid(); }));
    EXPECT_TRUE(watch_.front().ends()) << "horovodrun does not end";
    int status = 0;
    ::kill(pid_, has_failed_ ? SIGKILL : 0);
    ::waitpid(pid_, &status, 0);
    reaped_ = true;
    took_ = std::chrono::steady_clock::now() - started_at_;
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  bool has_ended_within(std::chrono::milliseconds span) const {
    return watch_.front().ends_within(span);
  }
  std::chrono::steady_clock::duration took() const { return took_; }

  static int occurrences(std::string_view text, std::string_view word) {
    int count = 0;
    for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
      ++count;
    return count;
  }

 private:
  static std::pair<UniqueFd, UniqueFd> make_pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    return {UniqueFd(ends[0]), UniqueFd(ends[1])};
  }

  static void read_some(UniqueFd& pipe, std::string& text) {
    static std::array<char, 1 << 16> buffer;
    const ssize_t count = ::read(pipe.get(), buffer.data(), buffer.size());
    if (count > 0) {
      text.append(buffer.data(), static_cast<size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      pipe.reset();
    }
  }

  bool read_until(const std::function<bool()>& is_done) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!is_done()) {
      std::array<pollfd, 2> polled{{{out_pipe_.get(), POLLIN, 0}, {err_pipe_.get(), POLLIN, 0}}};
      const int ready = ::poll(polled.data(), polled.size(), poll_milliseconds(deadline));
      if (ready <= 0 || (!out_pipe_.valid() && !err_pipe_.valid())) {
        has_failed_ = true;
        ADD_FAILURE() << "expected output did not come\nstdout: " << out_.substr(0, 2000)
                      << "\nstderr: " << err_.substr(0, 2000);
        return false;
      }
      if (polled[0].revents != 0) read_some(out_pipe_, out_);
      if (polled[1].revents != 0) read_some(err_pipe_, err_);
    }
    return true;
  }

  pid_t pid_ = -1;
  std::vector<ProcessWatch> watch_;  // one
  UniqueFd out_pipe_;
  UniqueFd err_pipe_;
  std::string out_;
  std::string err_;
  bool reaped_ = false;
  bool has_failed_ = false;
  std::chrono::steady_clock::time_point started_at_;
  std::chrono::steady_clock::duration took_{};
};

// Writes a line into the pipe for which a rank of the job waits. False, at once, if the job ends
// and so nobody will ever read: opening the pipe as a file would wait for that for ever.
inline bool let_go(const LaunchedJob& job, const std::string& pipe) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    const UniqueFd gate(::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    if (gate.valid()) return ::write(gate.get(), "go\n", 3) == 3;
    const bool is_too_late = std::chrono::steady_clock::now() >= deadline;
    if (is_too_late || job.has_ended_within(std::chrono::milliseconds(10))) return false;
  }
}

// Arguments that run a shell script on every rank.
inline std::vector<std::string> shell(int ranks, const std::string& script) {
  return {"-np", std::to_string(ranks), "sh", "-c", script};
}

inline std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  const size_t start = text.find_last_of('\n', end);
  return text.substr(start == std::string::npos ? 0 : start + 1, end - start);
}

inline std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace hvd::test
