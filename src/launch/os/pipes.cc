#include "launch/os/pipes.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace hvd::launch {
namespace {

Result<Pipe> make_pipe(int ours) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_status("cannot make a pipe", errno);
  Pipe pipe{.ours = UniqueFd(ends[ours]), .theirs = UniqueFd(ends[1 - ours])};
  if (::fcntl(pipe.ours.get(), F_SETFL, O_NONBLOCK) != 0) {
    return errno_status("cannot prepare a pipe", errno);
  }
  return pipe;
}

}  // namespace

Result<Pipe> pipe_to_read() { return make_pipe(0); }
Result<Pipe> pipe_to_write() { return make_pipe(1); }

}  // namespace hvd::launch
