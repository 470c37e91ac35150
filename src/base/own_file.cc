#include "base/own_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/parse.h"
#include "base/text.h"

namespace hvd {
namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// In a folder that everybody may write to, only what is ours or the folder's owner's is trusted.
Status check_owner_in(const std::string& folder, const struct stat& entry) {
  struct stat place {};
  if (::stat(folder.c_str(), &place) != 0) return errno_status("its folder", errno);
  if ((place.st_mode & S_IWOTH) == 0) return Status::ok();
  if (entry.st_uid != ::geteuid() && entry.st_uid != place.st_uid) {
    return precondition_error(concat("it lies in a folder that everybody may write to and belongs ",
                                     "to user ", entry.st_uid, ", expected user ", ::geteuid(),
                                     "; choose a folder of your own"));
  }
  if (S_ISREG(entry.st_mode) && entry.st_nlink > 1) {
    return precondition_error(
        "it lies in a folder that everybody may write to and has a second name; choose a folder of "
        "your own");
  }
  return Status::ok();
}

// As it is; `more` are flags of open().
Result<UniqueFd> open_own_file(const std::string& path, int more, unsigned mode) {
  // O_NONBLOCK: a named pipe without reader is an error, not a hang.
  constexpr int kFlags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC | O_NONBLOCK;
  UniqueFd file(::open(path.c_str(), kFlags | more, mode));
  if (!file.valid() && errno == ELOOP) {
    return precondition_error("it is a symbolic link, which is not followed; name the file itself");
  }
  if (!file.valid()) {
    const int error = errno;
    return Status(errno_status("", error).code(), std::strerror(error));
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return errno_status("it cannot be looked at", errno);
  HVD_TRY(check_owner_in(folder_of(path), info));
  return file;
}

}  // namespace

Result<UniqueFd> create_own_file(const std::string& path, unsigned mode) {
  HVD_TRY_ASSIGN(UniqueFd file, open_own_file(path, 0, mode));
  // After the look at it. Pipes and devices have no length.
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return errno_status("it cannot be looked at", errno);
  if (S_ISREG(info.st_mode) && ::ftruncate(file.get(), 0) != 0) {
    return errno_status("it cannot be emptied", errno);
  }
  return file;
}

Result<UniqueFd> append_to_own_file(const std::string& path, unsigned mode) {
  return open_own_file(path, O_APPEND, mode);
}

Status make_own_folders(const std::string& path, unsigned mode) {
  for (size_t slash = 0; slash != std::string::npos;) {
    slash = path.find('/', slash + 1);
    const std::string part = path.substr(0, slash);
    const std::string who = concat("folder '", part, "'");
    if (::mkdir(part.c_str(), mode) == 0) continue;
    if (errno != EEXIST) return errno_status(concat("cannot make ", who), errno);
    struct stat info {};
    if (::lstat(part.c_str(), &info) != 0) return errno_status(who, errno);
    if (const Status owner = check_owner_in(folder_of(part), info); !owner)
      return blame(who, owner);
  }
  return Status::ok();
}

}  // namespace hvd
