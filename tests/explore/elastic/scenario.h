// scenario.h - what may happen in one explored elastic job: hosts, limits, and how many
// misfortunes. Pure values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/plan/hosts.h"

namespace hvd::explore_elastic {

struct Scenario {
  std::string name;
  int32_t least = 1;
  int32_t first = 2;
  int32_t most = 4;
  std::vector<launch::HostSlots> hosts;
  std::vector<std::vector<launch::HostSlots>> changes = {};  // of the hosts, in this order
  std::vector<std::string> cuts = {};  // hosts whose network is cut at some time, for good
  int kills = 0;
  int freezes = 0;
  int leaves = 0;      // SIGTERM
  int bad_starts = 0;  // newcomers that end before init
  int commits = 3;     // after which the training is over
};

// Short jobs, each with other misfortunes.
const std::vector<Scenario>& all_scenarios();

}  // namespace hvd::explore_elastic
