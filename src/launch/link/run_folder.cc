#include "launch/link/run_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/text.h"
#include "launch/link/agent_message.h"

namespace hvd::launch {
namespace {

constexpr size_t kPieceBytes = size_t{256} << 10;

// The names that horovod.runner uses.
std::string function_path(const std::string& folder) { return folder + "/function"; }
std::string file_path(const std::string& folder, RunFile file, int32_t rank) {
  return concat(folder, "/", file == RunFile::kResult ? "result." : "failure.", rank);
}

Status write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_status(concat("cannot write '", path, "'"), errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return Status::ok();
}

Result<UniqueFd> create_private_file(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) return errno_status(concat("cannot make '", path, "'"), errno);
  return file;
}

}  // namespace

Result<RunFolder> RunFolder::create(const std::string& parent, std::string_view function) {
  std::string path = concat(parent, "/horovod-run-XXXXXX");
  if (::mkdtemp(path.data()) == nullptr) {
    return errno_status(concat("cannot make a folder for the function in '", parent, "'"), errno);
  }
  RunFolder folder(std::move(path));
  HVD_TRY_ASSIGN(const UniqueFd file, create_private_file(function_path(folder.path_)));
  HVD_TRY(write_all(file.get(), function, function_path(folder.path_)));
  return folder;
}

RunFolder::~RunFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void RunFolder::read_files(int32_t rank, const std::function<bool(const FilePiece&)>& take) const {
  std::vector<char> buffer(kPieceBytes);
  for (const RunFile file : {RunFile::kResult, RunFile::kFailure}) {
    const UniqueFd fd(
        ::open(file_path(path_, file, rank).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd.valid()) continue;
    for (bool is_last = false; !is_last;) {
      const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      is_last = count <= 0;
      const std::string_view bytes(buffer.data(), is_last ? 0 : static_cast<size_t>(count));
      if (!take({.rank = rank, .file = file, .bytes = bytes, .is_last = is_last})) return;
    }
  }
}

Result<std::string> read_function(const std::string& folder) {
  const std::string path = function_path(folder);
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) {
    return errno_status(concat(kRunFolderVariable, ": cannot read '", path, "'"), errno);
  }
  if (info.st_size > static_cast<off_t>(kMaxFrameBytes / 2)) {
    return invalid_argument(
        concat("the function of horovod.run and its arguments have ", info.st_size,
               " bytes, at most ", kMaxFrameBytes / 2,
               " can be sent to other hosts; HOROVOD_RUN_DIRECTORY names a folder that all hosts "
               "share instead"));
  }
  std::string text(static_cast<size_t>(info.st_size), '\0');
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = ::read(fd.get(), text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      return errno_status(concat("cannot read '", path, "'"), count < 0 ? errno : EIO);
    done += static_cast<size_t>(count);
  }
  return text;
}

Status ReturnedFiles::take(const FilePiece& piece) {
  const std::string path = file_path(folder_, piece.file, piece.rank);
  const std::string incoming = path + ".incoming";
  UniqueFd& fd = open_[{piece.rank, piece.file}];
  if (!fd.valid()) {
    HVD_TRY_ASSIGN(fd, create_private_file(incoming));
  }
  HVD_TRY(write_all(fd.get(), piece.bytes, incoming));
  if (!piece.is_last) return Status::ok();
  fd.reset();
  open_.erase({piece.rank, piece.file});
  if (::rename(incoming.c_str(), path.c_str()) == 0) return Status::ok();
  return errno_status(concat("cannot rename '", incoming, "'"), errno);
}

}  // namespace hvd::launch
