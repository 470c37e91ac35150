#include "launch/os/read_text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/fd.h"
#include "base/text.h"

namespace hvd::launch {

Result<std::string> read_text_file(std::string_view who, const std::string& path) {
  // A mistake of the user, whatever the reason.
  const auto failure = [&](int error_number) {
    return invalid_argument(
        errno_status(concat(who, ": cannot read '", path, "'"), error_number).message());
  };
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return failure(errno);
  std::string text;
  std::array<char, 16384> buffer;
  while (true) {
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failure(errno);
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<size_t>(count));
    if (text.size() > kMaxTextFileBytes) return failure(EFBIG);
  }
}

}  // namespace hvd::launch
