#include "launch/job/fleet_start.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

#include "base/text.h"
#include "launch/link/agent_message.h"
#include "launch/link/meeting_place.h"
#include "launch/output/output_files.h"

namespace hvd::launch {
namespace {

constexpr char kStoreVariable[] = "HOROVOD_STORE_ADDRESSES";

LabelStyle label_style(int fd, const EnvironmentList& environment) {
  const bool is_unwanted = !get_variable(environment, "NO_COLOR").value_or("").empty() ||
                           get_variable(environment, "TERM").value_or("dumb") == "dumb";
  return ::isatty(fd) == 1 && !is_unwanted ? LabelStyle::kColoured : LabelStyle::kPlain;
}

Result<std::string> working_directory() {
  std::array<char, PATH_MAX> path{};
  if (::getcwd(path.data(), path.size()) == nullptr) {
    return errno_status("cannot read the working directory", errno);
  }
  return std::string(path.data());
}

}  // namespace

Result<FleetStart> FleetStart::prepare(const Prepared& prepared, const std::string& program,
                                       const Signals& signals, const DescriptorLimit& limit) {
  HVD_TRY_ASSIGN(const net::Key key, net::Key::random());
  FleetStart start(prepared, program, signals, limit, key);
  const ElasticOptions& elastic = prepared.options.elastic;
  const bool may_have_several = elastic.is_requested() && (prepared.found.hosts.size() > 1 ||
                                                           may_hosts_change(prepared.options));
  if (prepared.plan.hosts.size() > 1 || may_have_several) {
    HVD_TRY_ASSIGN(start.fleet_.store, JobStore::start(key, prepared.options.network_interfaces));
  }
  if (!elastic.join.empty()) {
    HVD_TRY_ASSIGN(const MeetingPlace place, parse_meeting_place(elastic.join));
    HVD_TRY_ASSIGN(const net::Key user_key, net::Key::from_file(elastic.key_file));
    HVD_TRY_ASSIGN(start.fleet_.joined,
                   JoinedHosts::listen(place, prepared.options.network_interfaces, user_key,
                                       prepared.found.hosts.front().host));
  }
  const auto folder = get_variable(prepared.plan.environment, kRunFolderVariable);
  if ((prepared.plan.hosts.size() > 1 || may_have_several) && folder && !folder->empty()) {
    HVD_TRY_ASSIGN(start.function_, read_function(*folder));
    start.fleet_.returned.emplace(*folder);
  }
  if (!elastic.is_requested()) HVD_TRY(start.open_outputs());
  return start;
}

Status FleetStart::open_outputs() {
  for (const WorkerPlan& worker : prepared_.plan.workers) {
    HVD_TRY(open_output(worker.place.rank, worker.place.hostname, worker.output_directory));
  }
  return Status::ok();
}

Status FleetStart::open_output(int32_t rank, const std::string& host,
                               const std::string& directory) {
  const EnvironmentList& environment = prepared_.plan.environment;
  const LineStamp stamp = prepared_.options.prefix_timestamp ? LineStamp::kTime : LineStamp::kNone;
  OutputFiles files;
  if (!directory.empty()) {
    HVD_TRY_ASSIGN(files, open_output_files(directory));
  }
  fleet_.ranks.push_back({.rank = rank,
                          .host = host,
                          .started_at = Clock::steady().now(),
                          .out = WorkerOutput({.rank = rank,
                                               .stream = OutputStream::kOut,
                                               .file = std::move(files.out),
                                               .stamp = stamp,
                                               .style = label_style(STDOUT_FILENO, environment)}),
                          .err = WorkerOutput({.rank = rank,
                                               .stream = OutputStream::kErr,
                                               .file = std::move(files.err),
                                               .stamp = stamp,
                                               .style = label_style(STDERR_FILENO, environment)})});
  return Status::ok();
}

std::string FleetStart::key_text() const {
  return {reinterpret_cast<const char*>(key_.bytes().data()), key_.bytes().size()};
}

EnvironmentList FleetStart::full_environment(const WorkerPlan& worker) const {
  EnvironmentList environment = worker_environment(prepared_.plan, worker);
  if (fleet_.store) set_variable(environment, kStoreVariable, fleet_.store->addresses());
  return environment;
}

Result<StartMessage> FleetStart::common_message() const {
  HVD_TRY_ASSIGN(std::string directory, working_directory());
  return StartMessage{.key = key_text(),
                      .working_directory = std::move(directory),
                      .command = prepared_.options.command,
                      .environment = {},
                      .ranks = {},
                      .termination_grace = prepared_.settings.termination_grace,
                      .function = function_};
}

Result<std::string> FleetStart::start_frame(const StartMessage& message) {
  std::string frame = encode_frame(FrameKind::kStart, encode(message));
  if (frame.size() > kMaxFrameBytes) {
    return invalid_argument(concat("command and environment are too long for other hosts: ",
                                   frame.size(), " bytes, at most ", kMaxFrameBytes));
  }
  return frame;
}

Result<std::string> FleetStart::start_message(const HostPlan& host) const {
  HVD_TRY_ASSIGN(StartMessage message, common_message());
  for (int32_t rank : host.ranks) {
    const WorkerPlan& worker = prepared_.plan.workers[static_cast<size_t>(rank)];
    // The same for all ranks of a host, but for their own variables, which come behind it.
    if (message.environment.empty()) message.environment = full_environment(worker);
    message.ranks.push_back({.rank = rank, .variables = worker.variables});
  }
  return start_frame(message);
}

Status FleetStart::connect() {
  const Plan& plan = prepared_.plan;
  for (const HostPlan& host : plan.hosts) {
    if (host.is_local) continue;
    HVD_TRY_ASSIGN(const std::string message, start_message(host));
    Result<RemoteHost> remote =
        RemoteHost::connect(host, plan.environment, message, signals_, limit_);
    if (!remote) return remote.status();
    fleet_.remote.push_back(*std::move(remote));
    if (host.ranks.front() == 0) fleet_.input_host = &fleet_.remote.back();
  }
  return Status::ok();
}

Status FleetStart::start_local(const HostPlan& host) {
  LocalStart request{.program = program_,
                     .command = prepared_.options.command,
                     .ranks = {},
                     .key = key_text(),
                     .first_stdin = STDIN_FILENO};
  for (int32_t rank : host.ranks) {
    request.ranks.push_back(
        {.rank = rank,
         .environment = full_environment(prepared_.plan.workers[static_cast<size_t>(rank)])});
  }
  if (host.ranks.front() == 0 && ::isatty(STDIN_FILENO) == 1) {
    HVD_TRY_ASSIGN(fleet_.stdin_pump, StdinPump::create(STDIN_FILENO));
    request.first_stdin = fleet_.stdin_pump->worker_end();
  }
  Result<LocalWorkers> workers = LocalWorkers::start(request, signals_, limit_);
  if (!workers) return workers.status();
  fleet_.local.emplace(*std::move(workers));
  if (fleet_.stdin_pump) fleet_.stdin_pump->close_worker_end();
  return Status::ok();
}

Status FleetStart::go() {
  const TimePoint started_at = Clock::steady().now();
  for (RankState& state : fleet_.ranks) state.started_at = started_at;
  for (const HostPlan& host : prepared_.plan.hosts) {
    if (host.is_local) HVD_TRY(start_local(host));
  }
  for (RemoteHost& host : fleet_.remote) host.go();
  return Status::ok();
}

}  // namespace hvd::launch
