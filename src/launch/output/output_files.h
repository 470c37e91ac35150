// output_files.h - the per-rank files of --output-filename. Blocks for the file system only. Any
// thread.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/status.h"

namespace hvd::launch {

struct OutputFiles {
  UniqueFd out;
  UniqueFd err;
};

// Makes the directory and its parents, and empties `stdout` and `stderr` in it.
Result<OutputFiles> open_output_files(const std::string& directory);

}  // namespace hvd::launch
