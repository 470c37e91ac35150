// own_file.h - files that this process writes at a path that a user named, also in folders that
// others may write to (the shared temporary folder): no symbolic link is followed to the file, and
// there nothing is used that somebody else put in its place. May block as the file system does.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/status.h"

namespace hvd {

// An empty file for writing, made or emptied. Named pipes and devices are opened as they are, and
// without waiting. Errors do not name the path.
Result<UniqueFd> create_own_file(const std::string& path, unsigned mode);
// The same, behind what it holds.
Result<UniqueFd> append_to_own_file(const std::string& path, unsigned mode);

// The folder and those above it that are missing. Errors name the folder.
Status make_own_folders(const std::string& path, unsigned mode);

}  // namespace hvd
