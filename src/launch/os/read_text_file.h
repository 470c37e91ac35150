// read_text_file.h - a small file as a whole. Blocks for the file system only. Any thread.
#pragma once

#include <string>

#include "base/status.h"

namespace hvd::launch {

inline constexpr size_t kMaxTextFileBytes = size_t{4} << 20;

// `who` begins the message of a failure: "--hostfile".
Result<std::string> read_text_file(std::string_view who, const std::string& path);

}  // namespace hvd::launch
