// descriptor_limit.h - room for the pipes of many workers; the workers get the limit that we found.
#pragma once

#include <sys/resource.h>

#include <cstdint>

#include "base/status.h"

namespace hvd::launch {

class DescriptorLimit {
 public:
  // Raises the soft limit if `workers` need more than it allows; fails if the hard limit is too
  // low. `later` of them may come while the job runs: for these as far as the hard limit allows.
  static Result<DescriptorLimit> make_room(int32_t workers, int32_t later = 0);

  // In a worker, before exec. Safe after fork.
  void restore() const;

 private:
  rlimit before_{};
  bool raised_ = false;
};

}  // namespace hvd::launch
