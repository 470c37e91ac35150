// axes.h - which knobs are worth turning in a job, and near which level each stands by itself.
// Knobs that may change the last digits of results are left out. Pure; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "tune/search.h"

namespace hvd::tune {

// What the engine has decided by itself.
struct Defaults {
  int ranks = 1;
  int hosts = 1;
  bool has_one_rank_per_host = false;
  int64_t small_bytes = 0;
  int64_t spin_count = 0;
  int64_t yield_count = 0;
  // Set by the user: not to be changed.
  bool spin_is_fixed = false, yield_is_fixed = false, progress_is_fixed = false;
};
std::vector<Axis> axes_for(const Defaults& defaults);

}  // namespace hvd::tune
