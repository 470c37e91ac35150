// trace_checks.h - reading back a trace: every check a viewer would rely on.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hvd::trace {

using Json = nlohmann::json;

// Process ids by tensor name.
inline std::map<std::string, int> pids_of(const Json& trace) {
  std::map<std::string, int> pids;
  for (const Json& record : trace) {
    if (record.value("name", "") != "process_name" || record["pid"] == 0) continue;
    pids[record["args"]["name"]] = record["pid"];
  }
  return pids;
}

// The phases, and names where there are any, of one process: "B:ALLREDUCE", "X:0", "E", ...
inline std::vector<std::string> steps_of(const Json& trace, const std::string& tensor) {
  std::vector<std::string> steps;
  const int pid = pids_of(trace).at(tensor);
  for (const Json& record : trace) {
    if (record["ph"] == "M" || !record.contains("pid") || record["pid"] != pid) continue;
    std::string step = record["ph"];
    if (record.contains("name")) step += ':', step += record["name"].get<std::string>();
    steps.push_back(step);
  }
  return steps;
}

// Begins and ends pair up in every process, time never goes back, pids are 1, 2, ... by appearance.
inline void expect_well_formed(const Json& trace) {
  std::map<int, int> depth;
  int known_pids = 0;
  uint64_t last_time = 0;
  for (const Json& record : trace) {
    const std::string phase = record["ph"];
    if (phase == "M") {
      if (record["name"] == "process_name" && record["pid"] != 0) {
        EXPECT_EQ(record["pid"], ++known_pids);
      }
      continue;
    }
    EXPECT_TRUE(record["ts"].is_number_unsigned()) << record;
    EXPECT_GE(record["ts"].get<uint64_t>(), last_time) << record;
    last_time = record["ts"];
    if (phase == "i") continue;
    EXPECT_LE(record["pid"], known_pids) << record;
    if (phase == "B") ++depth[record["pid"]];
    if (phase == "E") {
      EXPECT_GE(--depth[record["pid"]], 0) << record;
    }
  }
  for (const auto& [pid, open] : depth) EXPECT_EQ(open, 0) << "levels left open in process " << pid;
}

inline uint64_t dropped_in(const Json& trace) {
  for (const Json& record : trace) {
    if (record.value("name", "") == "EVENTS_DROPPED") return record["args"]["count"];
  }
  return 0;
}

}  // namespace hvd::trace
