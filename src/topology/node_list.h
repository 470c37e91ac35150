// node_list.h - lists of nodes as Slurm writes them. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hvd::topology {

// "n[1-3,07],login" -> n1 n2 n3 n07 login
Result<std::vector<std::string>> expand_nodelist(std::string_view text);

}  // namespace hvd::topology
