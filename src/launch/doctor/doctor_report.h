// doctor_report.h - the words of `horovodrun doctor`. Pure; any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/doctor/doctor_facts.h"
#include "launch/doctor/doctor_probe.h"

namespace hvd::launch {

struct DoctorHost {
  std::string name;
  bool is_local = false;
  std::string failure = {};  // why there are no facts
  std::optional<HostFacts> facts = {};
};

struct DoctorFindings {
  std::vector<DoctorHost> hosts;
  std::map<std::pair<size_t, size_t>, ProbeResult> probes;  // who dialled, who was dialled
};

// Every host and which pairs can talk; then what is to be done about it.
std::string doctor_report(const DoctorFindings& findings);
std::string doctor_advice(const DoctorFindings& findings);
// Whether every host answered and every pair could talk.
bool is_usable(const DoctorFindings& findings);

}  // namespace hvd::launch
