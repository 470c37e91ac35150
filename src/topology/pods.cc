#include "topology/pods.h"

#include <sstream>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "topology/places.h"

namespace hvd::topology {
namespace {

constexpr char kIndex[] = "JOB_COMPLETION_INDEX";

// The longest name that /etc/hosts has for `pod`: Kubernetes writes the full name, with the
// service, before the short one.
std::string full_name(const std::string& pod, const std::string& hosts_file) {
  std::istringstream lines(hosts_file);
  std::string best;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string address, longest;
    bool is_own = false;
    words >> address;
    for (std::string name; words >> name;) {
      if (name == pod || name.starts_with(pod + ".")) is_own = true;
      if (name.starts_with(pod + ".") && name.size() > longest.size()) longest = name;
    }
    if (is_own && longest.size() > best.size()) best = longest;
  }
  return best;
}

// "train-3" of index 3 -> "train-"; empty if the name has another form.
std::string job_prefix(const std::string& pod, int32_t index) {
  const std::string suffix = concat("-", index);
  if (!pod.ends_with(suffix)) return {};
  return pod.substr(0, pod.size() - suffix.size() + 1);
}

}  // namespace

Result<std::optional<LauncherFacts>> indexed_job_facts(const Environment& environment,
                                                       const FileReader& files) {
  if (text_variable(environment, "HOROVOD_RANK")) return std::optional<LauncherFacts>();
  HVD_TRY_ASSIGN(const auto index, integer_variable(environment, kIndex, 0));
  HVD_TRY_ASSIGN(const auto size, integer_variable(environment, "HOROVOD_SIZE", 1));
  if (!index || !size) return std::optional<LauncherFacts>();
  HVD_TRY_ASSIGN(const auto local_size, integer_variable(environment, "HOROVOD_LOCAL_SIZE", 1));
  const int32_t pods = *size / local_size.value_or(1);
  if (pods * local_size.value_or(1) != *size) {
    return invalid_argument(concat("HOROVOD_SIZE: expected a multiple of HOROVOD_LOCAL_SIZE, ",
                                   local_size.value_or(1), ", got ", *size));
  }
  if (*index >= pods) {
    return invalid_argument(concat(kIndex, ": expected 0 to ", pods - 1, " (HOROVOD_SIZE is ",
                                   *size, " with ", local_size.value_or(1), " in each pod), got ",
                                   *index, "; set HOROVOD_SIZE to the completions of the job"));
  }
  LauncherFacts facts{.launcher = Launcher::kIndexedJob};
  HVD_TRY(place_on_equal_hosts(environment, *index, pods, kIndex, facts));
  facts.store_port = kPodStorePort;
  facts.hostname = text_variable(environment, "HOSTNAME").value_or("");
  const std::string prefix = job_prefix(facts.hostname, *index);
  if (prefix.empty()) return std::optional(facts);
  facts.job_name = concat("pods-", prefix.substr(0, prefix.size() - 1));
  const std::string own = full_name(facts.hostname, files("/etc/hosts").value_or(""));
  if (!own.empty()) facts.first_host = concat(prefix, "0", own.substr(facts.hostname.size()));
  return std::optional(facts);
}

}  // namespace hvd::topology
