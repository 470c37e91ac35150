#include "launch/os/descriptor_limit.h"

#include <algorithm>
#include <cerrno>

#include "base/text.h"

namespace hvd::launch {
namespace {

// Two pipes, two files and a note while running, five more ends while one worker is being started.
constexpr rlim_t kPerWorker = 5;
constexpr rlim_t kOurs = 64;

}  // namespace

Result<DescriptorLimit> DescriptorLimit::make_room(int32_t workers, int32_t later) {
  DescriptorLimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit.before_) != 0) {
    return errno_status("cannot read the limit of open files", errno);
  }
  const rlim_t needed = kPerWorker * static_cast<rlim_t>(workers) + kOurs;
  const rlim_t wished = needed + kPerWorker * static_cast<rlim_t>(later);
  if (limit.before_.rlim_cur == RLIM_INFINITY || limit.before_.rlim_cur >= wished) return limit;
  const bool has_end = limit.before_.rlim_max != RLIM_INFINITY;
  if (has_end && limit.before_.rlim_max < needed) {
    return precondition_error(concat("-np ", workers, " needs ", needed,
                                     " open files, the limit is ", limit.before_.rlim_max,
                                     " (ulimit -Hn)"));
  }
  const rlimit wanted{.rlim_cur = has_end ? std::min(wished, limit.before_.rlim_max) : wished,
                      .rlim_max = limit.before_.rlim_max};
  if (::setrlimit(RLIMIT_NOFILE, &wanted) != 0) {
    if (limit.before_.rlim_cur >= needed) return limit;  // more was a wish
    return errno_status("cannot raise the limit of open files", errno);
  }
  limit.raised_ = true;
  return limit;
}

void DescriptorLimit::restore() const {
  if (raised_) ::setrlimit(RLIMIT_NOFILE, &before_);
}

}  // namespace hvd::launch
