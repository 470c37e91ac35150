// plan_json.h - what --plan-json prints: the options as the Python launcher names them, and what
// would be started. The key of the job is not in it. --parse-json prints the part that needs no
// look at hosts and programs. Pure; any thread.
#pragma once

#include <optional>
#include <string>

#include "launch/options/options.h"
#include "launch/plan/plan.h"

namespace hvd::launch {

// A job that another launcher starts (mpirun, jsrun).
struct ForeignLaunch {
  std::string launcher;      // "mpirun", "jsrun"
  std::string command_line;  // for /bin/sh
  std::string rank_file;     // of jsrun: content of the file that the line names; empty: none
};

std::string plan_json(const Options& options, const Plan& plan,
                      const std::optional<ForeignLaunch>& foreign);

// `values`: why one of them is refused, or OK.
std::string parse_json(const Options& options, const Status& values);

}  // namespace hvd::launch
