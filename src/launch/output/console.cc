#include "launch/output/console.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/text.h"

namespace hvd::launch {
namespace {

bool lead_to_same_file(int a, int b) {
  struct stat first {};
  struct stat second {};
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

}  // namespace

Console Console::for_descriptor(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return {fd, UniqueFd(), Mode::kSmallWrites};
  if (S_ISSOCK(info.st_mode)) return {fd, UniqueFd(), Mode::kSocket};
  if (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode)) {
    // O_NONBLOCK belongs to the opening, not to the descriptor: setting it on an inherited one
    // would change it for the shell and for every other program on the same terminal.
    UniqueFd own(
        ::open(concat("/proc/self/fd/", fd).c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (own.valid()) {
      const int own_fd = own.get();
      return {own_fd, std::move(own), Mode::kNonBlocking};
    }
    return {fd, UniqueFd(), Mode::kSmallWrites};
  }
  return {fd, UniqueFd(), Mode::kNonBlocking};  // a file never makes us wait for a reader
}

void Console::append(std::string_view text) {
  if (broken_ || text.empty()) return;
  if (written_ > 0 && written_ == pending_.size()) {
    pending_.clear();
    written_ = 0;
  }
  pending_ += text;
  last_ = text.back();
}

void Console::start_line() {
  if (last_ != '\n') append("\n");
}

bool Console::is_writable() const {
  pollfd watch{.fd = fd_, .events = POLLOUT, .revents = 0};
  return ::poll(&watch, 1, 0) == 1;
}

ssize_t Console::write_some(std::string_view text) const {
  switch (mode_) {
    case Mode::kSocket:
      return ::send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    case Mode::kSmallWrites:
      // A pipe that polls writable takes this much without blocking.
      if (!is_writable()) {
        errno = EAGAIN;
        return -1;
      }
      return ::write(fd_, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
    case Mode::kNonBlocking:
      break;
  }
  return ::write(fd_, text.data(), text.size());
}

void Console::flush_some() {
  while (has_pending()) {
    const std::string_view queued = pending_;
    const ssize_t count = write_some(queued.substr(written_));
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) break;
      broken_ = true;
      pending_.clear();
      written_ = 0;
      return;
    }
    written_ += static_cast<size_t>(count);
  }
  // Moves the rest to the front only when that is less work than what has been written.
  if (written_ > pending_.size() / 2) {
    pending_.erase(0, written_);
    written_ = 0;
  }
}

Terminal::Terminal(int out_fd, int err_fd) : out_(Console::for_descriptor(out_fd)) {
  if (!lead_to_same_file(out_fd, err_fd)) err_ = Console::for_descriptor(err_fd);
}

void Terminal::flush_some() {
  out_.flush_some();
  if (err_) err_->flush_some();
}

}  // namespace hvd::launch
