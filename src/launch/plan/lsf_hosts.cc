#include "launch/plan/lsf_hosts.h"

#include "base/parse.h"
#include "base/text.h"
#include "launch/options/yaml.h"
#include "launch/plan/hosts.h"

namespace hvd::launch {

bool is_lsf_job(const EnvironmentList& environment) {
  return get_variable(environment, "LSB_JOBID").has_value();
}

Result<std::vector<std::string>> compute_nodes(std::string_view allocation) {
  const auto root = parse_yaml(allocation);
  if (!root) return blame(kCsmAllocationQuery, root.status());
  const YamlNode* nodes = root->find("compute_nodes");
  if (nodes == nullptr || nodes->kind != YamlNode::Kind::kList || nodes->items.empty()) {
    return precondition_error(concat(kCsmAllocationQuery, " names no compute nodes"));
  }
  std::vector<std::string> names;
  for (const YamlNode& item : nodes->items) {
    if (const Status good = check_host_name(item.scalar); !good) {
      return blame(kCsmAllocationQuery, good);
    }
    names.push_back(item.scalar);
  }
  return names;
}

Result<NodeShape> node_shape(std::string_view attributes) {
  const auto root = parse_yaml(attributes);
  if (!root) return blame(kCsmNodeQuery, root.status());
  const YamlNode* record = root->find("Record_1");
  NodeShape shape;
  for (const auto& [key, out] :
       {std::pair<const char*, int32_t*>{"discovered_cores", &shape.core_count},
        {"discovered_gpus", &shape.gpu_count}}) {
    const YamlNode* value = record == nullptr ? nullptr : record->find(key);
    if (value == nullptr) return precondition_error(concat(kCsmNodeQuery, " says no ", key));
    const auto number = parse_integer(value->scalar, {0, INT32_MAX});
    if (!number) return blame(concat(kCsmNodeQuery, ": ", key), number.status());
    *out = static_cast<int32_t>(*number);
  }
  return shape;
}

Result<int32_t> threads_per_core(std::string_view lscpu) {
  constexpr std::string_view kKey = "Thread(s) per core:";
  const size_t at = lscpu.find(kKey);
  if (at == std::string_view::npos) return precondition_error("lscpu says no threads per core");
  std::string_view rest = lscpu.substr(at + kKey.size());
  rest = rest.substr(0, rest.find('\n'));
  const auto number = parse_integer(rest, {1, 1024});
  if (!number) return blame("lscpu: threads per core", number.status());
  return static_cast<int32_t>(*number);
}

}  // namespace hvd::launch
