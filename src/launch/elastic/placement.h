// placement.h - which rank each worker of a new world gets. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "elastic/message.h"

namespace hvd::launch {

struct Candidate {
  int32_t worker = 0;
  std::string host = {};
  int32_t last_rank = -1;  // in the world before; -1: it was in none and has no state
};

struct Placed {
  int32_t worker = 0;
  elastic::Assign place = {};
};

// By rank. Survivors keep their order, so that rank 0 has state whenever anybody has; newcomers
// stand behind the survivors of their host, and new hosts behind all others: the ranks of a host
// stay together.
std::vector<Placed> place_workers(std::span<const Candidate> candidates, uint64_t epoch);

}  // namespace hvd::launch
