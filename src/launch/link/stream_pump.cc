#include "launch/link/stream_pump.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "launch/link/frame_stream.h"
#include "launch/os/now.h"

namespace hvd::launch {
namespace {

// Beyond this the side that is quicker waits.
constexpr size_t kPumpHighWaterBytes = size_t{256} << 10;

}  // namespace

StreamPump::StreamPump(std::unique_ptr<net::Stream> stream, UniqueFd local)
    : stream_(std::move(stream)), local_(std::move(local)) {}

void StreamPump::watch(PollSet& polls) {
  // What the stream has taken from its socket already wakes nobody.
  if (stream_ && stream_->has_buffered()) read_stream();
  settle();
  if (stream_ && to_local_.size() < kPumpHighWaterBytes) {
    polls.watch(stream_->descriptor(), POLLIN, [this] { read_stream(); });
  }
  if (stream_ && !to_stream_.empty()) {
    polls.watch(stream_->descriptor(), POLLOUT, [this] { flush_stream(); });
  }
  if (!has_local_ended_ && to_stream_.size() < kPumpHighWaterBytes) {
    polls.watch(local_.get(), POLLIN, [this] { read_local(); });
  }
  if (!to_local_.is_empty()) polls.watch(local_.get(), POLLOUT, [this] { flush_local(); });
}

void StreamPump::end_stream() {
  stream_.reset();
  to_stream_.clear();
}

void StreamPump::read_stream() {
  std::array<char, 65536> buffer;
  while (stream_ && to_local_.size() < kPumpHighWaterBytes) {
    const iovec room{buffer.data(), buffer.size()};
    const auto got = stream_->receive({&room, 1});
    if (!got) end_stream();
    if (!got || *got == 0) break;
    if (!is_local_deaf_) to_local_.append({buffer.data(), *got});
  }
  flush_local();
}

void StreamPump::read_local() {
  if (!local_.valid()) return;
  std::array<char, 65536> buffer;
  const ssize_t count = ::read(local_.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    has_local_ended_ = true;
  } else if (stream_) {
    to_stream_.append(buffer.data(), static_cast<size_t>(count));
  }
  flush_stream();
}

void StreamPump::flush_stream() {
  if (stream_ && !send_some(*stream_, to_stream_).is_ok()) end_stream();
  settle();
}

void StreamPump::flush_local() {
  // What was written there before the reader went away can still be read.
  if (local_.valid() && to_local_.flush_some(local_.get()) != 0) {
    is_local_deaf_ = true;
    to_local_.clear();
  }
  settle();
}

void StreamPump::settle() {
  // Whoever closed its end has said all it wanted to. The other host closes the connection when it
  // has read that: were we first, something that it sends meanwhile would make the kernel drop the
  // rest.
  if (has_local_ended_ && to_stream_.empty() && !has_said_all_) {
    has_said_all_ = is_local_deaf_ = true;
    if (stream_) ::shutdown(stream_->descriptor(), SHUT_WR);
    local_.reset();
    to_local_.clear();
  }
  if (stream_ || !local_.valid() || !is_local_ending_ || is_local_told_) return;
  if (!to_local_.is_empty()) return;
  is_local_told_ = true;
  ::shutdown(local_.get(), SHUT_WR);
}

Result<LocalPair> make_local_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
    return errno_status("cannot make a pair of sockets", errno);
  }
  return LocalPair{.ours = UniqueFd(ends[0]), .theirs = UniqueFd(ends[1])};
}

}  // namespace hvd::launch
