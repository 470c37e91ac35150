// waiting.h - what a stall report is about: a name that is in some ranks' streams and not in all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hvd::engine {

struct Waiting {
  std::string name;
  uint64_t ticket;           // tells this submission from the next one of the same name
  std::vector<int> missing;  // set ranks
};

}  // namespace hvd::engine
