// fleet.h - what a running job consists of, seen from the launcher: the state of every rank, the
// processes of this host, the connections to the others. A value that start builds and the
// supervisor looks after. One thread.
#pragma once

#include <sys/types.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "launch/job/job_store.h"
#include "launch/job/report.h"
#include "launch/link/joined_hosts.h"
#include "launch/link/remote_host.h"
#include "launch/link/run_folder.h"
#include "launch/output/output_tail.h"
#include "launch/output/stdin_pump.h"
#include "launch/output/worker_output.h"
#include "launch/ranks/local_workers.h"

namespace hvd::launch {

struct RankState {
  int32_t rank;
  std::string host;
  TimePoint started_at;
  WorkerOutput out;
  WorkerOutput err;
  OutputTail tail = {};
  pid_t pid = 0;                          // on its host
  std::optional<ExitStatus> status = {};  // set when it has ended
  RankFate fate = RankFate::kRemains;
  TimePoint ended_at = {};
  bool was_asked = false;                // to end, before it was on its way out
  std::optional<FailureNote> note = {};  // that it left before that
  RemoteHost* remote = nullptr;          // of an elastic worker on another host
};

struct Fleet {
  std::vector<RankState> ranks;  // by rank; in an elastic job by the number of the worker
  std::optional<LocalWorkers> local = {};
  std::deque<RemoteHost> remote = {};          // stay where they are while others are added
  std::optional<StdinPump> stdin_pump = {};    // terminal -> rank 0, if it runs here
  RemoteHost* input_host = nullptr;            // where rank 0 runs, if not here
  std::optional<JobStore> store = {};          // none: one host
  std::unique_ptr<JoinedHosts> joined = {};    // of --join, where the job is launched
  std::optional<ReturnedFiles> returned = {};  // of horovod.run
};

}  // namespace hvd::launch
