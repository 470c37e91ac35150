// run_folder.h - the files of horovod.run on hosts that share no folder: the function goes there
// with the start, results and exceptions come back at the end. What the files hold is Python's
// business. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/status.h"
#include "launch/ranks/worker_events.h"

namespace hvd::launch {

// Where Python's launcher keeps the files on its host, and where ranks find theirs.
inline constexpr char kRunFolderVariable[] = "HOROVOD_RUN_FOLDER";

// On a host of the job: a folder for this user alone, gone when the owner goes.
class RunFolder {
 public:
  static Result<RunFolder> create(const std::string& parent, std::string_view function);
  ~RunFolder();
  RunFolder(RunFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  RunFolder& operator=(RunFolder&&) = delete;

  const std::string& path() const { return path_; }
  // Calls take(piece) with the files that the rank left, in pieces; false ends it.
  void read_files(int32_t rank, const std::function<bool(const FilePiece&)>& take) const;

 private:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

// The function that Python's launcher left for the ranks.
Result<std::string> read_function(const std::string& folder);

// On the launcher's host: writes what comes back. A file appears when all of it has come.
class ReturnedFiles {
 public:
  explicit ReturnedFiles(std::string folder) : folder_(std::move(folder)) {}

  Status take(const FilePiece& piece);

 private:
  std::string folder_;
  std::map<std::pair<int32_t, RunFile>, UniqueFd> open_;
};

}  // namespace hvd::launch
