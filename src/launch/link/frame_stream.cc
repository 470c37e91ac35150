#include "launch/link/frame_stream.h"

#include <array>
#include <chrono>
#include <utility>

#include "base/text.h"
#include "launch/os/now.h"

namespace hvd::launch {

Status send_some(net::Stream& stream, std::string& queue) {
  while (!queue.empty()) {
    const iovec part{queue.data(), queue.size()};
    HVD_TRY_ASSIGN(const size_t sent, stream.send({&part, 1}));
    if (sent == 0) break;
    queue.erase(0, sent);
  }
  return Status::ok();
}

FrameStream::FrameStream(std::unique_ptr<net::Stream> stream)
    : stream_(std::move(stream)), spoke_at_(now()), heard_at_(now()), next_heartbeat_(now()) {}

void FrameStream::send(FrameKind kind, std::string_view payload) {
  if (!stream_) return;
  out_ += encode_frame(kind, payload);
  if (const Status sent = send_some(*stream_, out_); !sent.is_ok()) close(sent);
}

void FrameStream::watch(PollSet& polls, const std::function<void(const Frame&)>& take) {
  if (!stream_) return;
  polls.watch(stream_->descriptor(), POLLIN, [this, take] { read(take); });
  if (!out_.empty()) {
    polls.watch(stream_->descriptor(), POLLOUT, [this] {
      if (!stream_) return;
      if (const Status sent = send_some(*stream_, out_); !sent.is_ok()) close(sent);
    });
  }
  polls.wake_by(next_heartbeat_);
}

void FrameStream::read(const std::function<void(const Frame&)>& take) {
  std::array<char, 16384> buffer;
  while (stream_) {
    const iovec room{buffer.data(), buffer.size()};
    const auto got = stream_->receive({&room, 1});
    if (!got) {
      close(got.status());
      return;
    }
    if (*got == 0) return;
    spoke_at_ = heard_at_ = now();
    reader_.append({buffer.data(), *got});
    while (stream_) {
      const auto frame = reader_.next();
      if (!frame) {
        close(frame.status());
        return;
      }
      if (!*frame) break;
      take(**frame);
    }
  }
}

void FrameStream::on_time(TimePoint time, Nanoseconds silence) {
  if (!stream_ || time < next_heartbeat_) return;
  // We were away ourselves (stopped, or held up): what came meanwhile has not been read yet.
  if (time - next_heartbeat_ > kAwayTime) heard_at_ = time;
  next_heartbeat_ = time + kHeartbeatPeriod;
  send(FrameKind::kHeartbeat, {});
  if (time - heard_at_ <= silence) return;
  const auto span = std::chrono::duration_cast<std::chrono::seconds>(time - heard_at_);
  close(
      Status(StatusCode::kPeerLost, concat("nothing was heard from it for ", span.count(), " s")));
}

void FrameStream::close(const Status& why) {
  if (!stream_) return;
  why_ = why;
  stream_.reset();
  out_.clear();
}

}  // namespace hvd::launch
