#include "launch/ranks/key_descriptor.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace hvd::launch {

Result<UniqueFd> make_key_descriptor(std::string_view key) {
  UniqueFd file(::memfd_create("horovod-key", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return errno_status("cannot make a memory file for the job's key", errno);
  if (::pwrite(file.get(), key.data(), key.size(), 0) != static_cast<ssize_t>(key.size()) ||
      ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) !=
          0) {
    return errno_status("cannot write the job's key", errno);
  }
  return file;
}

}  // namespace hvd::launch
