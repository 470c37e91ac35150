// stream_pump.h - carries bytes both ways between an encrypted stream and a descriptor of this
// host: what ssh is for an agent that was started by ssh. One thread; never blocks.
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "launch/os/byte_queue.h"
#include "launch/os/poll_set.h"
#include "net/stream.h"

namespace hvd::launch {

class StreamPump {
 public:
  // `local` is one end of a socket pair, non-blocking. Without a stream there is only an end to be
  // told.
  StreamPump(std::unique_ptr<net::Stream> stream, UniqueFd local);

  void watch(PollSet& polls);

  // The other host sends nothing more, and nobody there listens.
  bool has_stream_ended() const { return stream_ == nullptr; }
  // Nobody waits for it any longer.
  void end_stream();
  // When all that came has been taken from the descriptor, whoever reads there sees the end.
  void end_local() { is_local_ending_ = true; }
  bool is_local_ending() const { return is_local_ending_; }
  // Whoever read there has closed its end, too, and nothing is left to carry.
  bool is_over() const { return stream_ == nullptr && !local_.valid(); }

 private:
  void read_stream();
  void read_local();
  void flush_stream();
  void flush_local();
  void settle();

  std::unique_ptr<net::Stream> stream_;
  UniqueFd local_;
  std::string to_stream_;
  ByteQueue to_local_;
  bool has_local_ended_ = false;  // nothing more comes from there
  bool is_local_deaf_ = false;    // nobody reads there: what comes for it is dropped
  bool has_said_all_ = false;     // the other host knows that nothing more comes
  bool is_local_ending_ = false;
  bool is_local_told_ = false;
};

// Both ends non-blocking.
struct LocalPair {
  UniqueFd ours;
  UniqueFd theirs;
};
Result<LocalPair> make_local_pair();

}  // namespace hvd::launch
