#include <sys/utsname.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "error.h"
#include "report/output.h"

namespace hvd::bench {
namespace {

using nlohmann::ordered_json;

// Four significant digits: more than any of these figures deserves.
ordered_json number(std::optional<double> value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  if (*value == 0) return 0;
  const double scale = std::pow(10, 3 - std::floor(std::log10(std::abs(*value))));
  return std::round(*value * scale) / scale;
}

ordered_json row_json(const Row& row) {
  ordered_json j = {{"case", row.title()},
                    {"unit", row.unit},
                    {"ours", number(row.value)},
                    {"peers", ordered_json::object()},
                    {"ours_beside", ordered_json::object()},
                    {"ratios", ordered_json::object()},
                    {"far_ratios", ordered_json::object()}};
  for (const auto* rivals : {&row.peers, &row.siblings}) {
    for (const auto& [name, rival] : *rivals) {
      j["peers"][name] = number(rival.value);
      j["ours_beside"][name] = number(rival.our_value);
      j["ratios"][name] = number(rival.ratio.near);
      j["far_ratios"][name] = number(rival.ratio.far);
    }
  }
  j["rounds"] = {{"near", row.near_rounds}, {"far", row.far_rounds}};
  j["limit"] = row.limit ? number(row.limit->value) : ordered_json(nullptr);
  j["of_limit"] = row.limit ? number(row.limit->ratio.near) : ordered_json(nullptr);

  bool reached = true;
  ordered_json goals = ordered_json::array();
  for (const Verdict& v : row.verdicts) {
    reached = reached && v.reached();
    const char* bound = v.bound == Verdict::Bound::kAtLeast ? "at_least" : "at_most";
    goals.push_back({{"versus", v.versus},
                     {bound, number(v.figure)},
                     {"got", number(v.got)},
                     {"reached", v.reached()}});
  }
  // `goal` and `reached` for a quick look: the first figure, and whether all of them are reached.
  j["goal"] = row.verdicts.empty() ? ordered_json(nullptr) : number(row.verdicts.front().figure);
  j["reached"] = row.verdicts.empty() ? ordered_json(nullptr) : ordered_json(reached);
  j["goals"] = goals;
  return j;
}

}  // namespace

Machine this_machine() {
  Machine machine;
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) machine.cpu = line.substr(colon + 2);
    break;
  }
  machine.cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  utsname system{};
  if (uname(&system) == 0) machine.kernel = system.release;
  return machine;
}

void write_json(const std::string& path, const std::string& bench, const Machine& machine,
                const std::vector<Row>& rows) {
  ordered_json list = ordered_json::array();
  for (const Row& row : rows) list.push_back(row_json(row));
  const ordered_json j = {
      {"bench", bench},
      {"machine", {{"cores", machine.cores}, {"cpu", machine.cpu}, {"kernel", machine.kernel}}},
      {"rows", list}};
  std::ofstream file(path);
  file << j.dump(1) << '\n';
  file.close();
  if (!file) throw BenchError("cannot write '" + path + "'");
}

}  // namespace hvd::bench
