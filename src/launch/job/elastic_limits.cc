#include "launch/job/elastic_limits.h"

#include <random>

#include "launch/plan/host_sources.h"

namespace hvd::launch {

PolicyLimits policy_limits(const Options& options, const LaunchSettings& settings) {
  const ElasticOptions& elastic = options.elastic;
  PolicyLimits limits;
  limits.least = elastic.min_num_proc.value_or(options.num_proc);
  limits.first = options.num_proc;
  limits.most = elastic.max_num_proc.value_or(kMaxWorkers);
  limits.resets = elastic.reset_limit;
  if (settings.elastic_timeout) limits.timeout = *settings.elastic_timeout;
  if (elastic.timeout) limits.timeout = *elastic.timeout;
  limits.ready_time = settings.elastic_ready_time;
  limits.reach_time =
      options.start_timeout.value_or(settings.start_timeout.value_or(kDefaultStartTimeout));
  limits.cooldown.range = elastic.cooldown_range;
  limits.whole_hosts = elastic.whole_hosts;
  limits.may_hosts_change = may_hosts_change(options);
  limits.seed = std::random_device()();
  return limits;
}

}  // namespace hvd::launch
