// frame_stream.h - frames (agent_message.h) over an encrypted stream: the connection between a
// host that has joined and its launcher. One thread; never blocks.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "launch/link/agent_message.h"
#include "launch/os/poll_set.h"
#include "net/stream.h"

namespace hvd::launch {

// Sends what can be sent of `queue` now, and takes it out.
Status send_some(net::Stream& stream, std::string& queue);

class FrameStream {
 public:
  explicit FrameStream(std::unique_ptr<net::Stream> stream);

  void send(FrameKind kind, std::string_view payload);
  // `take` is called with what comes, from PollSet::wait; it may send.
  void watch(PollSet& polls, const std::function<void(const Frame&)>& take);
  // A heartbeat when it is time; and a peer that is silent for `silence` is lost.
  void on_time(TimePoint now, Nanoseconds silence);
  // Nothing comes any more, for this reason.
  void close(const Status& why);

  bool is_open() const { return stream_ != nullptr; }
  const Status& why() const { return why_; }
  // When something came for the last time.
  TimePoint spoke_at() const { return spoke_at_; }

 private:
  void read(const std::function<void(const Frame&)>& take);

  std::unique_ptr<net::Stream> stream_;  // null: closed
  FrameReader reader_{false};
  std::string out_;
  Status why_;
  TimePoint spoke_at_;
  TimePoint heard_at_;  // silence counts from here
  TimePoint next_heartbeat_;
};

}  // namespace hvd::launch
