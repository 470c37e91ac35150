#include "launch/plan.h"

#include "base/text.h"
#include "launch/hosts.h"

namespace hvd::launch {
namespace {

EnvironmentList worker_environment(const topology::Topology& place, const Options& options,
                                   const PlanInputs& inputs) {
  EnvironmentList list = inputs.environment;
  const auto set_number = [&list](const char* name, int32_t value) {
    set_variable(list, name, concat(value));
  };
  set_number("HOROVOD_RANK", place.rank);
  set_number("HOROVOD_SIZE", place.size);
  set_number("HOROVOD_LOCAL_RANK", place.local_rank);
  set_number("HOROVOD_LOCAL_SIZE", place.local_size);
  set_number("HOROVOD_CROSS_RANK", place.cross_rank);
  set_number("HOROVOD_CROSS_SIZE", place.cross_size);
  set_variable(list, "HOROVOD_HOSTNAME", place.hostname);
  set_variable(list, "HOROVOD_JOB_ID", place.job_id);
  // Otherwise Python holds back its output until it ends, because it writes to a pipe.
  set_variable(list, "PYTHONUNBUFFERED", "1");

  constexpr char kTimeout[] = "HOROVOD_GLOO_TIMEOUT_SECONDS";
  if (options.start_timeout) {
    set_variable(list, kTimeout, concat(options.start_timeout->count()));
  } else if (inputs.settings.start_timeout && !get_variable(list, kTimeout)) {
    set_variable(list, kTimeout, concat(inputs.settings.start_timeout->count()));
  }
  return list;
}

// Padded to the width of the last rank, so that directories sort by rank.
std::string rank_directory(const std::string& parent, int32_t rank, int32_t size) {
  const size_t width = concat(size - 1).size();
  const std::string digits = concat(rank);
  return concat(parent, "/rank.", std::string(width - digits.size(), '0'), digits);
}

}  // namespace

Result<Plan> make_plan(const Options& options, const PlanInputs& inputs) {
  if (!options.hosts.empty()) {
    HVD_TRY_ASSIGN(const std::vector<HostSlots> hosts, parse_hosts(options.hosts));
    HVD_TRY(check_one_host(hosts, inputs.hostname, options.num_proc));
  }
  Plan plan;
  for (int32_t rank = 0; rank < options.num_proc; ++rank) {
    WorkerPlan worker;
    worker.place = {.rank = rank,
                    .size = options.num_proc,
                    .local_rank = rank,
                    .local_size = options.num_proc,
                    .cross_rank = 0,
                    .cross_size = 1,
                    .hostname = inputs.hostname,
                    .job_id = inputs.job_id};
    worker.environment = worker_environment(worker.place, options, inputs);
    if (!options.output_directory.empty()) {
      worker.output_directory = rank_directory(options.output_directory, rank, options.num_proc);
    }
    plan.workers.push_back(std::move(worker));
  }
  return plan;
}

}  // namespace hvd::launch
