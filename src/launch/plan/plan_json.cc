#include "launch/plan/plan_json.h"

#include "base/json_text.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/version.h"

namespace hvd::launch {
namespace {

std::string json_bool(bool value) { return value ? "true" : "false"; }

std::string json_text_or_null(std::string_view text) {
  return text.empty() ? "null" : json_string(text);
}

template <typename T>
std::string json_number_or_null(const std::optional<T>& number) {
  return number ? concat(*number) : "null";
}

std::string json_seconds_or_null(const std::optional<std::chrono::seconds>& span) {
  return span ? concat(span->count()) : "null";
}

std::string json_variables(const EnvironmentList& environment) {
  JsonObject object;
  for (const std::string& entry : environment) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    object.add(entry.substr(0, equals), json_string(entry.substr(equals + 1)));
  }
  return object.text();
}

// A tunable as Python's argparse would hold it.
std::string json_tunable(const TunableInfo& info, const Tunables& tunables) {
  const auto& given = tunables.given(info.id);
  if (!given) return "null";
  switch (info.kind) {
    case TunableKind::kText:
    case TunableKind::kLogLevel:
      return json_string(*tunables.get(info.id));
    case TunableKind::kMebibytes:
      return concat(parse_integer(*given).value());  // checked when it was set
    case TunableKind::kSwitch:
      return *given;
    case TunableKind::kInteger:
    case TunableKind::kDecimal:
      break;
  }
  return *tunables.get(info.id);
}

std::string options_json(const Options& options) {
  JsonObject object;
  const ElasticOptions& elastic = options.elastic;
  object.add("num_proc", options.num_proc == 0 ? "null" : concat(options.num_proc))
      .add("hosts", json_text_or_null(options.hosts))
      .add("hostfile", json_text_or_null(options.hostfile))
      .add("config_file", json_text_or_null(options.config_file))
      .add("nics",
           options.network_interfaces.empty() ? "null" : json_strings(options.network_interfaces))
      .add("output_filename", json_text_or_null(options.output_directory))
      .add("prefix_output_with_timestamp", json_bool(options.prefix_timestamp))
      .add("verbose", json_bool(options.verbose))
      .add("disable_cache", json_bool(options.disable_cache))
      .add("start_timeout", json_seconds_or_null(options.start_timeout))
      .add("ssh_port", json_number_or_null(options.ssh.port))
      .add("ssh_identity_file", json_text_or_null(options.ssh.identity_file))
      .add("use_gloo", json_bool(options.controller == Controller::kGloo))
      .add("use_mpi", json_bool(options.controller == Controller::kMpi))
      .add("use_jsrun", json_bool(options.controller == Controller::kJsrun))
      .add("mpi_args", json_text_or_null(options.mpi.more_arguments))
      .add("binding_args", json_text_or_null(options.mpi.binding_arguments))
      .add("tcp_flag", json_bool(options.mpi.tcp_only))
      .add("min_num_proc", json_number_or_null(elastic.min_num_proc))
      .add("max_num_proc", json_number_or_null(elastic.max_num_proc))
      .add("slots", json_number_or_null(elastic.slots_per_host))
      .add("elastic_timeout", json_seconds_or_null(elastic.timeout))
      .add("reset_limit", json_number_or_null(elastic.reset_limit))
      .add("cooldown_range", elastic.cooldown_range
                                 ? concat("[", elastic.cooldown_range->first, ", ",
                                          elastic.cooldown_range->second, "]")
                                 : "null")
      .add("host_discovery_script", json_text_or_null(elastic.host_discovery_script))
      .add("command", json_strings(options.command));
  for (const TunableInfo& info : tunable_table()) {
    object.add(info.attribute, json_tunable(info, options.tunables));
  }
  return object.text();
}

std::string host_json(const HostPlan& host) {
  std::vector<std::string> ranks;
  for (int32_t rank : host.ranks) ranks.push_back(concat(rank));
  return JsonObject()
      .add("name", json_string(host.name))
      .add("slots", concat(host.slots))
      .add("local", json_bool(host.is_local))
      .add("ranks", json_list(ranks))
      .add("agent_command", host.is_local ? "null" : json_strings(host.agent_command))
      .text();
}

std::string worker_json(const WorkerPlan& worker) {
  const topology::Topology& place = worker.place;
  return JsonObject()
      .add("rank", concat(place.rank))
      .add("size", concat(place.size))
      .add("local_rank", concat(place.local_rank))
      .add("local_size", concat(place.local_size))
      .add("cross_rank", concat(place.cross_rank))
      .add("cross_size", concat(place.cross_size))
      .add("hostname", json_string(place.hostname))
      .add("output_directory", json_text_or_null(worker.output_directory))
      .add("environment", json_variables(worker.variables))
      .text();
}

template <typename Range, typename Function>
std::string json_lines(const Range& items, Function&& function) {
  std::vector<std::string> lines;
  for (const auto& item : items) lines.push_back(concat("\n    ", function(item)));
  return concat("[", join_text(lines, ","), "\n  ]");
}

using Part = std::pair<std::string_view, std::string>;

std::string json_document(const std::vector<Part>& parts) {
  std::vector<std::string> lines;
  for (const auto& [key, json] : parts) lines.push_back(concat("  ", json_string(key), ": ", json));
  return concat("{\n", join_text(lines, ",\n"), "\n}\n");
}

}  // namespace

std::string parse_json(const Options& options, const Status& values) {
  return json_document({
      {"version", json_string(version_text())},
      {"elastic", json_bool(options.elastic.is_requested())},
      {"command", json_strings(options.command)},
      {"problem", json_text_or_null(values.message())},
      {"options", options_json(options)},
      {"warnings", json_strings(options.warnings)},
  });
}

std::string plan_json(const Options& options, const Plan& plan,
                      const std::optional<ForeignLaunch>& foreign) {
  return json_document({
      {"version", json_string(version_text())},
      {"launcher", json_string(foreign ? foreign->launcher : "horovodrun")},
      {"elastic", json_bool(options.elastic.is_requested())},
      {"command", json_strings(options.command)},
      {"command_line", foreign ? json_string(foreign->command_line) : "null"},
      {"rank_file",
       foreign && !foreign->rank_file.empty() ? json_string(foreign->rank_file) : "null"},
      {"start_timeout", concat(plan.start_timeout.count())},
      {"options", options_json(options)},
      {"warnings", json_strings(options.warnings)},
      {"flag_environment", json_variables(plan.flag_variables)},
      {"environment", json_variables(plan.environment)},
      {"hosts_source", json_string(plan.hosts_source)},
      {"hosts", json_lines(plan.hosts, host_json)},
      {"ranks", json_lines(plan.workers, worker_json)},
  });
}

}  // namespace hvd::launch
