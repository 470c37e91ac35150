#include "topology/slurm.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/parse.h"
#include "base/text.h"
#include "topology/node_list.h"

namespace hvd::topology {
namespace {

// Slurm numbers the steps of batch scripts, interactive shells and the like from the top of 32
// bits.
constexpr int64_t kFirstSpecialStep = 0xfffffff0;

bool in_real_step(const Environment& environment) {
  const auto text = text_variable(environment, "SLURM_STEP_ID");
  if (!text || !text_variable(environment, "SLURM_PROCID")) return false;
  const auto step = parse_integer(*text);
  return step.is_ok() && step.value() >= 0 && step.value() < kFirstSpecialStep;
}

// Neighbouring nodes with as many tasks each: "2(x3)" is three nodes of two.
struct Nodes {
  int64_t tasks_each = 0, node_count = 1;
};

Result<Nodes> parse_nodes(std::string_view text) {
  constexpr Range<int64_t> kCount{.least = 1, .most = INT32_MAX};
  const size_t open = text.find("(x");
  Nodes nodes;
  HVD_TRY_ASSIGN(nodes.tasks_each, parse_integer(text.substr(0, open), kCount));
  if (open == std::string_view::npos) return nodes;
  if (text.back() != ')') return invalid_argument("no closing parenthesis");
  HVD_TRY_ASSIGN(nodes.node_count,
                 parse_integer(text.substr(open + 2, text.size() - open - 3), kCount));
  return nodes;
}

Result<std::vector<Nodes>> parse_tasks_per_node(const char* name, const std::string& text) {
  std::vector<Nodes> all;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const auto nodes = parse_nodes(std::string_view(text).substr(begin, comma - begin));
    if (!nodes) {
      return invalid_argument(
          concat(name, ": expected tasks of each node like '2(x3),1', got '", text, "'"));
    }
    all.push_back(nodes.value());
    begin = comma + 1;
  }
  return all;
}

// Tasks of the node with this index; 0 when there is no such node.
int64_t tasks_on(const std::vector<Nodes>& all, int64_t node) {
  for (const Nodes& nodes : all) {
    if (node < nodes.node_count) return nodes.tasks_each;
    node -= nodes.node_count;
  }
  return 0;
}

bool has_tasks(const std::vector<Nodes>& all, int64_t expected) {
  int64_t sum = 0;
  for (const Nodes& nodes : all) {
    sum += nodes.tasks_each * nodes.node_count;
    if (sum > expected) return false;  // also keeps the sum from overflowing
  }
  return sum == expected;
}

// How many of the first `limit` nodes have a task with this local rank.
int32_t nodes_with(const std::vector<Nodes>& all, int64_t local_rank, int64_t limit) {
  int64_t count = 0;
  for (const Nodes& nodes : all) {
    const int64_t here = std::min(nodes.node_count, limit);
    if (nodes.tasks_each > local_rank) count += here;
    limit -= here;
  }
  return static_cast<int32_t>(count);
}

Status add_places(const Environment& environment, LauncherFacts& facts) {
  constexpr const char* kTasks = "SLURM_STEP_TASKS_PER_NODE";
  const auto text = text_variable(environment, kTasks);
  HVD_TRY_ASSIGN(const auto local_rank, integer_variable(environment, "SLURM_LOCALID", 0));
  HVD_TRY_ASSIGN(const auto node, integer_variable(environment, "SLURM_NODEID", 0));
  if (!text || !local_rank || !node) return Status::ok();
  HVD_TRY_ASSIGN(const auto all, parse_tasks_per_node(kTasks, *text));
  if (!has_tasks(all, facts.world.size)) {
    return invalid_argument(concat(kTasks, ": expected the ", facts.world.size, " tasks of ",
                                   facts.world.size_variable, ", got '", *text, "'"));
  }
  const int64_t local_size = tasks_on(all, *node);
  if (local_size == 0) {
    return invalid_argument(
        concat("SLURM_NODEID: expected a node of ", kTasks, " '", *text, "', got ", *node));
  }
  if (*local_rank >= local_size) {
    return invalid_argument(concat("SLURM_LOCALID: expected 0 to ", local_size - 1, " (", kTasks,
                                   " is '", *text, "'), got ", *local_rank));
  }
  facts.local = Position{*local_rank, static_cast<int32_t>(local_size), "SLURM_LOCALID", kTasks};
  facts.cross = Position{nodes_with(all, *local_rank, *node),
                         nodes_with(all, *local_rank, INT64_MAX), "SLURM_NODEID", kTasks};
  return Status::ok();
}

// Task 0 of a step runs on its first node. Steps that run at the same time get different ports, as
// far as a few thousand of them allow; HOROVOD_STORE_PORT chooses another.
Status add_meeting_place(const Environment& environment, LauncherFacts& facts) {
  constexpr int64_t kFirstPort = 20000, kPorts = 10000;  // below those that the system hands out
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}) {
    const auto list = text_variable(environment, name);
    if (!list) continue;
    const auto nodes = expand_nodelist(*list);
    if (!nodes) return blame(name, nodes.status());
    if (!nodes->empty()) facts.first_host = nodes->front();
    break;
  }
  HVD_TRY_ASSIGN(const auto job, integer_variable(environment, "SLURM_JOB_ID", 0));
  HVD_TRY_ASSIGN(const auto step, integer_variable(environment, "SLURM_STEP_ID", 0));
  const int64_t number = int64_t{job.value_or(0)} * 31 + step.value_or(0);
  facts.store_port = static_cast<uint16_t>(kFirstPort + number % kPorts);
  return Status::ok();
}

}  // namespace

Result<std::optional<LauncherFacts>> slurm_facts(const Environment& environment) {
  if (!in_real_step(environment)) return std::optional<LauncherFacts>();
  // NTASKS may be that of the allocation; that of the step is the truth.
  const bool step_size = text_variable(environment, "SLURM_STEP_NUM_TASKS").has_value();
  HVD_TRY_ASSIGN(const auto world,
                 position_variables(environment, "SLURM_PROCID",
                                    step_size ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS"));
  if (!world) return std::optional<LauncherFacts>();
  LauncherFacts facts{.launcher = Launcher::kSlurm, .world = *world};
  HVD_TRY(add_places(environment, facts));
  HVD_TRY(add_meeting_place(environment, facts));
  // Several nodes may run on one machine, with one host name.
  facts.hostname = text_variable(environment, "SLURMD_NODENAME").value_or("");
  facts.job_name = name_from_variables(environment, "slurm", {"SLURM_JOB_ID", "SLURM_STEP_ID"});
  return std::optional(facts);
}

}  // namespace hvd::topology
