// host_discovery.h - which hosts there are while an elastic job runs: a script that is run again
// and again, or a host file that somebody edits. One thread; never blocks for longer than a small
// file takes. A script that hangs is killed.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "launch/os/descriptor_limit.h"
#include "launch/os/environment_list.h"
#include "launch/os/poll_set.h"
#include "launch/os/signals.h"
#include "launch/plan/host_sources.h"

namespace hvd::launch {

class HostDiscovery {
 public:
  HostDiscovery(const Options& options, const EnvironmentList& environment, const Signals& signals,
                const DescriptorLimit& limit, Nanoseconds period);
  ~HostDiscovery();
  HostDiscovery(const HostDiscovery&) = delete;
  HostDiscovery& operator=(const HostDiscovery&) = delete;

  // Hosts may change at all.
  bool is_active() const;
  void watch(PollSet& polls);
  // Starts the script, or reads the file, when it is time.
  void on_time(TimePoint now);
  // A child of this process has ended; true if it was the script.
  bool take_end(pid_t pid, int wait_status);
  // What was found since the last call. A failure is told once, until there is another.
  std::optional<Result<std::vector<HostSlots>>> take_news();

 private:
  Status start_script();
  void read_output();
  void finish(Result<std::vector<HostSlots>> found);

  const Options& options_;
  const EnvironmentList& environment_;
  const Signals& signals_;
  const DescriptorLimit& limit_;
  const Nanoseconds period_;
  TimePoint next_at_;
  pid_t pid_ = -1;
  UniqueFd out_;
  std::string text_;
  TimePoint started_at_{};
  std::string file_text_;  // as it was read last
  std::string last_failure_;
  std::optional<Result<std::vector<HostSlots>>> news_;
};

}  // namespace hvd::launch
