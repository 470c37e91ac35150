#include "topology/sagemaker.h"

#include <algorithm>
#include <vector>

#include "base/json_reader.h"
#include "base/parse.h"
#include "base/text.h"
#include "topology/places.h"

namespace hvd::topology {
namespace {

struct Hosts {
  std::string current;
  std::vector<std::string> all;
  std::string source;
};

Result<std::optional<Hosts>> hosts_of_file(const FileReader& files) {
  const auto text = files(kResourceFile);
  if (!text) return std::optional<Hosts>();
  const auto fields = parse_json_object(*text);
  if (!fields) return blame(kResourceFile, fields.status());
  const auto current = fields->find("current_host");
  const auto all = fields->find("hosts");
  if (current == fields->end() || current->second.size() != 1 || all == fields->end()) {
    return invalid_argument(
        concat(kResourceFile, ": expected a \"current_host\" and a list \"hosts\""));
  }
  return std::optional(Hosts{current->second.front(), all->second, kResourceFile});
}

Result<std::optional<Hosts>> hosts_of_toolkit(const Environment& environment) {
  const auto list = text_variable(environment, "SM_HOSTS");
  const auto current = text_variable(environment, "SM_CURRENT_HOST");
  if (!list || !current) return std::optional<Hosts>();
  const auto all = parse_json_strings(*list);
  if (!all) return blame("SM_HOSTS", all.status());
  return std::optional(Hosts{*current, *all, "SM_HOSTS"});
}

}  // namespace

Result<std::optional<LauncherFacts>> sagemaker_facts(const Environment& environment,
                                                     const FileReader& files) {
  HVD_TRY_ASSIGN(auto hosts, hosts_of_file(files));
  if (!hosts) {
    HVD_TRY_ASSIGN(hosts, hosts_of_toolkit(environment));
  }
  if (!hosts || hosts->all.size() < 2) return std::optional<LauncherFacts>();
  // algo-2 before algo-10.
  std::sort(hosts->all.begin(), hosts->all.end(), [](const auto& a, const auto& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  const auto own = std::find(hosts->all.begin(), hosts->all.end(), hosts->current);
  if (own == hosts->all.end()) {
    return invalid_argument(concat(hosts->source, ": expected the current host, '", hosts->current,
                                   "', among the ", hosts->all.size(), " hosts"));
  }
  LauncherFacts facts{.launcher = Launcher::kSageMaker};
  HVD_TRY(place_on_equal_hosts(environment, static_cast<int32_t>(own - hosts->all.begin()),
                               static_cast<int32_t>(hosts->all.size()), "current_host", facts));
  facts.hostname = hosts->current;
  facts.first_host = hosts->all.front();
  facts.store_port = kPodStorePort;
  facts.job_name = name_from_variables(environment, "sagemaker", {"TRAINING_JOB_NAME"});
  if (facts.job_name.empty()) facts.job_name = "sagemaker";  // a container has one job
  return std::optional(facts);
}

}  // namespace hvd::topology
