#include "launch/output_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/text.h"

namespace hvd::launch {
namespace {

Status make_directories(const std::string& directory) {
  for (size_t slash = 0; slash != std::string::npos;) {
    slash = directory.find('/', slash + 1);
    const std::string part = directory.substr(0, slash);
    if (::mkdir(part.c_str(), 0777) != 0 && errno != EEXIST) {
      return errno_status(concat("--output-filename: cannot make directory '", part, "'"), errno);
    }
  }
  return Status::ok();
}

Result<UniqueFd> create_output_file(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.valid()) {
    return errno_status(concat("--output-filename: cannot write '", path, "'"), errno);
  }
  return file;
}

}  // namespace

Result<OutputFiles> open_output_files(const std::string& directory) {
  HVD_TRY(make_directories(directory));
  HVD_TRY_ASSIGN(UniqueFd out, create_output_file(concat(directory, "/stdout")));
  HVD_TRY_ASSIGN(UniqueFd err, create_output_file(concat(directory, "/stderr")));
  return OutputFiles{.out = std::move(out), .err = std::move(err)};
}

}  // namespace hvd::launch
