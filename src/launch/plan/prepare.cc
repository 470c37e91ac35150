#include "launch/plan/prepare.h"

#include <limits.h>
#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/text.h"
#include "launch/options/config_file.h"
#include "launch/os/read_text_file.h"
#include "launch/plan/local_names.h"
#include "launch/plan/ssh_policy.h"

namespace hvd::launch {
namespace {

constexpr std::chrono::seconds kResolveTime{3};
constexpr std::chrono::seconds kAskSshTime{20};
constexpr int kPauseBetweenLooksMs = 1000;

// 128 random bits: no other job, of whatever user, has the same name.
Result<std::string> new_job_id() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return errno_status("cannot make a random job id", errno);
  }
  std::string text;
  for (unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

// What ssh's own configuration says about the other hosts.
Status ask_ssh(const Options& options, const EnvironmentList& environment,
               std::vector<LocatedHost>& hosts) {
  HVD_TRY_ASSIGN(const RemoteShell shell, RemoteShell::choose(options, environment, kAskSshTime));
  std::vector<std::string> names;
  for (const LocatedHost& host : hosts) {
    if (!host.is_local) names.push_back(host.slots.host);
  }
  const auto policies = find_policies(shell, names, environment, Deadline::after(kAskSshTime));
  auto policy = policies.begin();
  for (LocatedHost& host : hosts) {
    if (!host.is_local) host.ssh_policy = *policy++;
  }
  return Status::ok();
}

}  // namespace

Result<std::string> own_hostname() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) {
    return errno_status("cannot read the host name", errno);
  }
  return std::string(name.data());
}

Result<std::string> own_executable() {
  std::array<char, PATH_MAX> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  if (size < 0) return errno_status("cannot read /proc/self/exe", errno);
  return std::string(path.data(), static_cast<size_t>(size));
}

Status read_config_file(Options& options) {
  if (options.config_file.empty()) return Status::ok();
  HVD_TRY_ASSIGN(const std::string text, read_text_file("--config-file", options.config_file));
  return apply_config(options.config_file, text, options);
}

std::vector<LocatedHost> locate_hosts(const std::vector<HostSlots>& hosts,
                                      const std::string& hostname) {
  std::vector<std::string> names;
  for (const HostSlots& host : hosts) names.push_back(host.host);
  const std::vector<bool> is_local =
      find_local_names(names, hostname, Deadline::after(kResolveTime));
  std::vector<LocatedHost> located;
  for (size_t i = 0; i < hosts.size(); ++i) {
    located.push_back({.slots = hosts[i], .is_local = is_local[i]});
  }
  return located;
}

namespace {

Status check_sizes(const ElasticOptions& elastic) {
  if (!elastic.min_num_proc || !elastic.max_num_proc) return Status::ok();
  if (*elastic.min_num_proc <= *elastic.max_num_proc) return Status::ok();
  return invalid_argument(
      concat("--min-np ", *elastic.min_num_proc, " is more than --max-np ", *elastic.max_num_proc));
}

// The first hosts. One look after the other is all there is to do; a signal ends the program.
Result<FoundHosts> first_hosts(const Options& options, const LaunchSettings& settings,
                               const EnvironmentList& environment, const SayWaiting& say_waiting) {
  const auto patience =
      options.elastic.timeout.value_or(settings.elastic_timeout.value_or(kDefaultElasticTimeout));
  const Deadline deadline = Deadline::after(patience);
  for (bool is_first = true;; is_first = false) {
    HVD_TRY_ASSIGN(FoundHosts found, find_hosts(options, environment));
    if (!found.hosts.empty()) return found;
    if (!say_waiting) return invalid_argument(concat(found.source, ": no host in it"));
    if (deadline.passed()) {
      return Status(StatusCode::kTimedOut,
                    concat(found.source, " named no host within ", patience.count(), " s"));
    }
    if (is_first) {
      say_waiting(concat(found.source, " names no host yet: waiting for hosts, at most ",
                         patience.count(), " s"));
    }
    ::poll(nullptr, 0, kPauseBetweenLooksMs);
  }
}

}  // namespace

Result<Prepared> prepare_job(Options options, const EnvironmentList& environment,
                             const SayWaiting& say_waiting) {
  HVD_TRY(read_config_file(options));
  HVD_TRY(check_sizes(options.elastic));
  HVD_TRY_ASSIGN(LaunchSettings settings, read_launch_settings(environment));
  HVD_TRY_ASSIGN(FoundHosts found, first_hosts(options, settings, environment, say_waiting));
  options.num_proc = found.num_proc;
  HVD_TRY_ASSIGN(std::string hostname, own_hostname());
  HVD_TRY_ASSIGN(std::string job_id, new_job_id());
  HVD_TRY_ASSIGN(std::string executable, own_executable());
  std::vector<LocatedHost> hosts = locate_hosts(found.hosts, hostname);
  HVD_TRY(ask_ssh(options, environment, hosts));
  // An elastic job is planned for what is there now; workers beyond that come later.
  Options now = options;
  if (may_hosts_change(options)) {
    now.num_proc =
        static_cast<int32_t>(std::min<int64_t>(options.num_proc, total_slots(found.hosts)));
  }
  HVD_TRY_ASSIGN(Plan plan, make_plan(now, {.hostname = std::move(hostname),
                                            .job_id = std::move(job_id),
                                            .executable = std::move(executable),
                                            .environment = environment,
                                            .settings = settings,
                                            .hosts = std::move(hosts),
                                            .hosts_source = found.source}));
  return Prepared{.options = std::move(options),
                  .settings = std::move(settings),
                  .found = std::move(found),
                  .plan = std::move(plan)};
}

}  // namespace hvd::launch
