#include "engine/drive/affinity.h"

#include <sched.h>

#include <cerrno>
#include <cstring>

#include "base/log.h"

namespace hvd::engine {

void pin_to_core(const std::vector<int>& cores, int local_rank, int local_size) {
  if (cores.empty()) return;
  if (static_cast<int>(cores.size()) < local_size) {
    HVD_LOG(kError, "HOROVOD_THREAD_AFFINITY: ", cores.size(), " cores for ", local_size,
            " local ranks; nothing is pinned");
    return;
  }
  const int core = cores[static_cast<size_t>(local_rank)];
  cpu_set_t set;
  CPU_ZERO(&set);
  if (core >= 0 && core < CPU_SETSIZE) CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) {
    HVD_LOG(kError, "HOROVOD_THREAD_AFFINITY: cannot pin to core ", core, ": ",
            std::string_view(strerror(errno)));
  }
}

}  // namespace hvd::engine
