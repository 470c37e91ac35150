#include "launch/job/host_discovery.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/text.h"
#include "launch/os/exit_status.h"
#include "launch/os/now.h"
#include "launch/os/pipes.h"
#include "launch/os/read_text_file.h"
#include "launch/os/run_program.h"
#include "launch/os/spawn.h"

namespace hvd::launch {

HostDiscovery::HostDiscovery(const Options& options, const EnvironmentList& environment,
                             const Signals& signals, const DescriptorLimit& limit,
                             Nanoseconds period)
    : options_(options),
      environment_(environment),
      signals_(signals),
      limit_(limit),
      period_(period),
      next_at_(now() + period) {}

HostDiscovery::~HostDiscovery() {
  if (pid_ < 0) return;
  ::kill(-pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool HostDiscovery::is_active() const {
  return !options_.elastic.host_discovery_script.empty() || !options_.hostfile.empty();
}

Status HostDiscovery::start_script() {
  HVD_TRY_ASSIGN(Pipe out, pipe_to_read());
  std::vector<std::string> words = {"/bin/sh", "-c", options_.elastic.host_discovery_script};
  EnvironmentList variables = environment_;
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  HVD_TRY_ASSIGN(pid_, spawn_process({.rank = -1,
                                      .path = "/bin/sh",
                                      .arguments = exec_pointers(words).data(),
                                      .shell_arguments = exec_pointers(words).data(),
                                      .environment = exec_pointers(variables).data(),
                                      .stdin_fd = null.get(),
                                      .stdout_fd = out.theirs.get(),
                                      .stderr_fd = null.get(),
                                      .inherited_fds = {},
                                      .report_fd = null.get()},
                                     signals_, limit_));
  out_ = std::move(out.ours);
  text_.clear();
  started_at_ = now();
  return Status::ok();
}

void HostDiscovery::read_output() {
  std::array<char, 4096> buffer;
  const ssize_t count = ::read(out_.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    out_.reset();
  } else if (text_.size() < kMaxProgramOutput) {
    text_.append(buffer.data(), static_cast<size_t>(count));
  }
}

void HostDiscovery::watch(PollSet& polls) {
  if (out_.valid()) polls.watch(out_.get(), POLLIN, [this] { read_output(); });
  if (!is_active()) return;
  polls.wake_by(pid_ >= 0 ? started_at_ + kDiscoveryTime : next_at_);
}

void HostDiscovery::on_time(TimePoint time) {
  if (!is_active()) return;
  if (pid_ >= 0) {
    if (time - started_at_ >= kDiscoveryTime) ::kill(-pid_, SIGKILL);
    return;
  }
  if (time < next_at_) return;
  next_at_ = time + period_;
  if (!options_.elastic.host_discovery_script.empty()) {
    if (const Status started = start_script(); !started.is_ok()) finish(started);
    return;
  }
  const auto text = read_text_file("--hostfile", options_.hostfile);
  if (text && *text == file_text_) return;
  if (text) file_text_ = *text;
  finish(read_hosts_again(options_));
}

bool HostDiscovery::take_end(pid_t pid, int wait_status) {
  if (pid != pid_) return false;
  const std::string who =
      concat("--host-discovery-script ", options_.elastic.host_discovery_script);
  while (out_.valid()) {
    const size_t before = text_.size();
    read_output();
    if (out_.valid() && text_.size() == before) out_.reset();  // somebody else holds the pipe
  }
  pid_ = -1;
  const ExitStatus status = ExitStatus::from_wait_status(wait_status);
  if (status.signal == SIGKILL && now() - started_at_ >= kDiscoveryTime) {
    finish(Status(StatusCode::kTimedOut,
                  concat(who, " did not end within ", kDiscoveryTime.count(), " s")));
  } else if (!status.is_success()) {
    finish(precondition_error(concat(who, " ", describe(status))));
  } else {
    finish(parse_discovered(text_, options_));
  }
  return true;
}

void HostDiscovery::finish(Result<std::vector<HostSlots>> found) {
  if (!found) {
    if (found.status().message() == last_failure_) return;
    last_failure_ = found.status().message();
  } else {
    last_failure_.clear();
  }
  news_ = std::move(found);
}

std::optional<Result<std::vector<HostSlots>>> HostDiscovery::take_news() {
  return std::exchange(news_, std::nullopt);
}

}  // namespace hvd::launch
