#include "report/readings.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "error.h"

namespace hvd::bench {
namespace {

using nlohmann::json;

constexpr const char* kRoleNames[] = {"ours", "peer", "limit"};

Role role_from(const std::string& name) {
  for (int role = 0; role < 3; ++role) {
    if (name == kRoleNames[role]) return static_cast<Role>(role);
  }
  throw BenchError("unknown role '" + name + "'");
}

json to_json(const CaseReadings& c) {
  json entrants = json::array();
  for (const Entrant& e : c.entrants) {
    entrants.push_back({{"name", e.name}, {"role", kRoleNames[static_cast<int>(e.role)]}});
  }
  json rounds = json::array();
  for (const Round& round : c.rounds) {
    // NaN becomes null, JSON's only way to say "no value".
    rounds.push_back({{"rtt_ns", {round.before_ns, round.after_ns}}, {"values", round.values}});
  }
  return {{"case", c.name},   {"metric", c.metric},   {"unit", c.unit},  {"np", c.np},
          {"bytes", c.bytes}, {"entrants", entrants}, {"rounds", rounds}};
}

CaseReadings case_from(const json& j) {
  CaseReadings c{.name = j.at("case"),
                 .metric = j.at("metric"),
                 .unit = j.at("unit"),
                 .np = j.at("np"),
                 .bytes = j.at("bytes"),
                 .entrants = {},
                 .rounds = {}};
  for (const json& e : j.at("entrants")) {
    c.entrants.push_back({.name = e.at("name"), .role = role_from(e.at("role"))});
  }
  for (const json& r : j.at("rounds")) {
    Round round{.before_ns = r.at("rtt_ns").at(0), .after_ns = r.at("rtt_ns").at(1), .values = {}};
    for (const json& v : r.at("values")) {
      round.values.push_back(v.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                         : v.get<double>());
    }
    if (round.values.size() != c.entrants.size()) {
      throw BenchError("case '" + c.name + "': a round has " + std::to_string(round.values.size()) +
                       " values for " + std::to_string(c.entrants.size()) + " entrants");
    }
    c.rounds.push_back(std::move(round));
  }
  return c;
}

}  // namespace

void save(const Readings& readings, const std::string& path) {
  json cases = json::array();
  for (const CaseReadings& c : readings.cases) cases.push_back(to_json(c));
  std::ofstream file(path);
  file << json{{"bench", readings.bench}, {"source", readings.source}, {"cases", cases}} << '\n';
  file.close();
  if (!file) throw BenchError("cannot write '" + path + "'");
}

Readings load(const std::string& path) {
  try {
    std::ifstream file(path);
    if (!file) throw BenchError("cannot open it");
    const json j = json::parse(file);
    Readings readings{.bench = j.at("bench"), .source = j.at("source"), .cases = {}};
    for (const json& c : j.at("cases")) readings.cases.push_back(case_from(c));
    return readings;
  } catch (const std::exception& error) {
    throw BenchError("readings '" + path + "': " + error.what());
  }
}

}  // namespace hvd::bench
