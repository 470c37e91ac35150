// config_file.h - what the YAML file of --config-file adds to the command line. Pure; any thread.
#pragma once

#include <string_view>

#include "base/status.h"
#include "launch/options/options.h"

namespace hvd::launch {

// Whatever the command line has given stays. Keys that nobody knows become warnings; values that
// nobody understands are errors. `path` is for messages.
Status apply_config(std::string_view path, std::string_view text, Options& options);

}  // namespace hvd::launch
