// elastic_job.h - carries out what launch/elastic decides: starts and kills workers, tells them
// their places, hears what they say, asks for hosts, writes the log. The supervisor's loop drives
// it. One thread; never blocks for long.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "launch/elastic/policy.h"
#include "launch/job/chaos.h"
#include "launch/job/elastic_log.h"
#include "launch/job/fleet_start.h"
#include "launch/job/host_discovery.h"
#include "launch/output/console.h"

namespace hvd::launch {

struct ElasticEnd {
  int exit_code = 0;
  std::string reason;
};

class ElasticJob {
 public:
  ElasticJob(const Prepared& prepared, FleetStart& start, Terminal& terminal,
             const Signals& signals, const DescriptorLimit& limit, ElasticLog log);

  // Starts the first workers.
  void begin();

  void on_message(int32_t worker, std::string_view bytes);
  void on_exit(int32_t worker, const ExitStatus& status);
  // Its host cannot be reached any more, or its agent has gone without a word about it.
  // `was_reached`: there was one.
  void on_lost(int32_t worker, const std::string& why, bool was_reached);
  bool take_end(pid_t pid, int wait_status) { return discovery_.take_end(pid, wait_status); }

  void watch(PollSet& polls);
  // After every turn of the loop.
  void on_time();

  // The job is over; whoever is left has to be ended.
  const std::optional<ElasticEnd>& end() const { return end_; }
  // For the last lines.
  std::string summary() const { return costs_.text(); }

 private:
  void carry_out(const Actions& actions);
  void carry_out_one(const Action& action);
  void start_workers(const Actions& actions);
  void tell(int32_t worker, const elastic::ToWorker& message);
  void kill(int32_t worker);
  void say(const Action& action);
  void look_after_hosts();
  void take_hosts();
  void take_joined();
  void stir();

  const Prepared& prepared_;
  FleetStart& start_;
  Terminal& terminal_;
  Policy policy_;
  HostDiscovery discovery_;
  ElasticLog log_;
  ResetCosts costs_;
  std::optional<Chaos> chaos_;
  std::vector<WorkerEnd> not_started_;  // told to the policy when it is not deciding
  std::optional<ElasticEnd> end_;
};

}  // namespace hvd::launch
