#include "launch/job/decide.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "base/parse.h"
#include "base/text.h"
#include "launch/job/decide_lines.h"
#include "launch/job/elastic_limits.h"
#include "launch/job/elastic_log.h"
#include "launch/job/job_store.h"
#include "launch/os/byte_queue.h"
#include "launch/os/descriptor_limit.h"
#include "launch/os/exit_status.h"
#include "launch/os/now.h"
#include "launch/os/poll_set.h"
#include "launch/ranks/key_descriptor.h"

namespace hvd::launch {
namespace {

constexpr std::chrono::seconds kKeyTime{10};
constexpr int32_t kRoomForWorkers = 256;  // their connections to the store

Result<net::Key> read_key(const EnvironmentList& environment) {
  const auto text = get_variable(environment, kKeyVariable);
  if (!text) return invalid_argument(concat("--decide needs the job's key in ", kKeyVariable));
  const auto descriptor = parse_integer(*text, {.least = 0, .most = INT32_MAX});
  if (!descriptor) return blame(kKeyVariable, descriptor.status());
  return net::Key::from_descriptor(static_cast<int>(*descriptor), Deadline::after(kKeyTime));
}

Status check_sizes(const Options& options) {
  const int32_t least = options.elastic.min_num_proc.value_or(0);
  const int32_t most = options.elastic.max_num_proc.value_or(kMaxWorkers);
  if (least >= 1 && least <= options.num_proc && options.num_proc <= most) return Status::ok();
  return invalid_argument(concat("--decide: expected 1 <= --min-np <= -np <= --max-np, got ", least,
                                 ", ", options.num_proc, " and ", most));
}

class Decider {
 public:
  Decider(const PolicyLimits& limits, JobStore store, ElasticLog log)
      : policy_(limits), store_(std::move(store)), log_(std::move(log)) {
    out_.append(store_line(store_.addresses()));
  }

  Status run() {
    while (has_reader_ && (!is_over_ || !out_.is_empty())) {
      polls_.clear();
      if (!is_over_) polls_.watch(STDIN_FILENO, POLLIN, [this] { read_events(); });
      if (!out_.is_empty()) polls_.watch(STDOUT_FILENO, POLLOUT, [] {});  // flushed below
      store_.watch(polls_);
      const bool is_deciding = has_begun_ && !is_over_;
      const TimePoint wake = policy_.wake_at(now());
      if (wake != TimePoint::max() && is_deciding) polls_.wake_by(wake);
      polls_.wait();
      HVD_TRY(failure_);
      if (has_begun_ && !is_over_) take(policy_.on_time(now()));
      if (out_.flush_some(STDOUT_FILENO) != 0) has_reader_ = false;
    }
    return Status::ok();
  }

 private:
  void read_events() {
    std::array<char, 65536> buffer;
    const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (count <= 0) {
      has_reader_ = false;  // the driver has gone
      return;
    }
    in_.append(buffer.data(), static_cast<size_t>(count));
    size_t end = 0;
    while ((end = in_.find('\n')) != std::string::npos && failure_.is_ok()) {
      const std::string line = in_.substr(0, end);
      in_.erase(0, end + 1);
      take_line(line);
    }
    if (in_.size() > kMaxLineBytes) failure_ = invalid_argument("--decide: a line is too long");
  }

  void take_line(const std::string& line) {
    const auto event = parse_event(line);
    if (!event) {
      failure_ = blame("--decide", event.status());
      return;
    }
    if (is_over_) return;
    if (const auto* hosts = std::get_if<std::vector<HostSlots>>(&*event)) {
      has_begun_ = true;
      take(policy_.on_hosts(*hosts, now()));
    } else if (const auto* said = std::get_if<WorkerMessage>(&*event)) {
      take(policy_.on_message(said->worker, said->message, now()));
    } else {
      take(policy_.on_end(std::get<WorkerEnd>(*event), now()));
    }
  }

  void take(const Actions& actions) {
    for (const Action& action : actions) {
      log_.write({.event = action.event,
                  .epoch = policy_.epoch(),
                  .worker = action.worker,
                  .reason = action.reason});
      out_.append(action_lines(action, policy_.epoch(), wall_clock_ns()));
      is_over_ = is_over_ || action.kind == ActionKind::kEnd;
    }
  }

  Policy policy_;
  JobStore store_;
  ElasticLog log_;
  PollSet polls_;
  std::string in_;  // less than a line
  ByteQueue out_;
  bool has_reader_ = true;
  bool has_begun_ = false;  // hosts were named
  bool is_over_ = false;
  Status failure_;
};

}  // namespace

Result<int> run_decide(const Options& options, const EnvironmentList& environment) {
  HVD_TRY(check_sizes(options));
  ::signal(SIGPIPE, SIG_IGN);
  HVD_TRY_ASSIGN(const LaunchSettings settings, read_launch_settings(environment));
  HVD_TRY_ASSIGN(const net::Key key, read_key(environment));
  HVD_TRY(DescriptorLimit::make_room(kRoomForWorkers).status());
  HVD_TRY_ASSIGN(JobStore store, JobStore::start(key, options.network_interfaces));
  HVD_TRY_ASSIGN(ElasticLog log, ElasticLog::open(options.elastic.log_file));
  for (int fd : {STDIN_FILENO, STDOUT_FILENO}) {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
  PolicyLimits limits = policy_limits(options, settings);
  limits.may_hosts_change = true;  // the engine says
  HVD_TRY(Decider(limits, std::move(store), std::move(log)).run());
  return static_cast<int>(LauncherExit::kSuccess);
}

}  // namespace hvd::launch
