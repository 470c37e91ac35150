// engine_worker.h - an engine in a process beside this one, with settings of its own; see
// hosts_worker.cc. Collective in that all ranks give it the same commands. One thread; blocks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "ours_hosts.h"

namespace hvd::bench {

class EngineWorker {
 public:
  enum Kind : uint32_t { kAllreduce, kBytes, kObject };
  struct Command {
    uint32_t kind = kAllreduce;
    uint32_t operations = 1;
    uint64_t bytes = 0;
  };

  // `program` and `setting` ("HOROVOD_TLS=1") are the same on all ranks; `port` is free on rank 0.
  EngineWorker(const std::vector<std::string>& program, const HostsPlace& place, int port,
               const std::string& setting);
  ~EngineWorker();
  EngineWorker(const EngineWorker&) = delete;
  EngineWorker& operator=(const EngineWorker&) = delete;

  void run(const Command& command) const;

 private:
  pid_t pid_ = -1;
  UniqueFd to_, from_;
};

}  // namespace hvd::bench
