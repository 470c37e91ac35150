#include "launch/plan/slurm_hosts.h"

#include "base/parse.h"
#include "base/text.h"
#include "launch/options/options.h"

namespace hvd::launch {
namespace {

constexpr size_t kMaxNodes = 65536;

Status bad_list(std::string_view text) {
  return invalid_argument(concat("expected counts such as 2(x3),1, got '", text, "'"));
}

}  // namespace

Result<std::vector<int32_t>> expand_counts(std::string_view text) {
  std::vector<int32_t> counts;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string_view item = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    int64_t repeat = 1;
    if (const size_t open = item.find("(x"); open != std::string_view::npos) {
      if (!item.ends_with(')')) return bad_list(item);
      HVD_TRY_ASSIGN(repeat, parse_integer(item.substr(open + 2, item.size() - open - 3),
                                           {1, int64_t{kMaxNodes}}));
      item = item.substr(0, open);
    }
    HVD_TRY_ASSIGN(const int64_t count, parse_integer(item, {1, kMaxWorkers}));
    if (counts.size() + static_cast<size_t>(repeat) > kMaxNodes) return bad_list(item);
    counts.insert(counts.end(), static_cast<size_t>(repeat), static_cast<int32_t>(count));
  }
  return counts;
}

Result<std::optional<std::vector<HostSlots>>> slurm_hosts(const EnvironmentList& environment) {
  constexpr char kNodes[] = "SLURM_JOB_NODELIST";
  constexpr char kTasks[] = "SLURM_TASKS_PER_NODE";
  const auto list = get_variable(environment, kNodes);
  const auto tasks = get_variable(environment, kTasks);
  if (!list || !tasks || get_variable(environment, "SLURM_STEP_NUM_TASKS")) {
    return std::optional<std::vector<HostSlots>>();
  }
  const auto names = expand_nodelist(*list);
  if (!names) return blame(kNodes, names.status());
  const auto counts = expand_counts(*tasks);
  if (!counts) return blame(kTasks, counts.status());
  if (names->size() != counts->size()) {
    return invalid_argument(concat(kNodes, "=", *list, " names ", names->size(), " nodes, ", kTasks,
                                   "=", *tasks, " has ", counts->size()));
  }
  for (const std::string& name : *names) {
    if (const Status good = check_host_name(name); !good) return blame(kNodes, good);
  }
  std::vector<HostSlots> hosts;
  for (size_t i = 0; i < names->size(); ++i) add_host(hosts, {(*names)[i], (*counts)[i]});
  return std::optional(std::move(hosts));
}

}  // namespace hvd::launch
