// stream.h - one authenticated, ordered, non-blocking stream of bytes to another rank. Plain TCP,
// TLS or an in-process pair (tests). One thread at a time for sending, one for receiving; they may
// be different threads.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace hvd::net {

class Stream {
 public:
  virtual ~Stream() = default;
  // How many bytes were taken; 0: no room now. An error (PEER_LOST) names the peer and the reason,
  // and stays.
  virtual Result<size_t> send(std::span<const iovec> parts) = 0;
  // How many bytes came; 0: nothing now. The end of the stream is an error, too.
  virtual Result<size_t> receive(std::span<const iovec> parts) = 0;
  // For poll and epoll: readable when receive() may give something, writable when send() may take
  // something.
  virtual int descriptor() const = 0;
  // What to poll the descriptor for, to learn of `events` (POLLIN, POLLOUT): a descriptor that is
  // no socket may tell of both by being readable.
  virtual short wake_events(short events) const { return events; }
  // Whether poll(2) on the descriptor tells when receive() may give something that has_buffered()
  // does not tell of.
  virtual bool is_socket() const { return false; }
  // Bytes or an error that receive() would give without the descriptor being readable: a stream
  // that encrypts reads ahead.
  virtual bool has_buffered() const { return false; }
  // "rank 3 (host b, 10.0.0.2:41234)", for errors.
  virtual const std::string& peer() const = 0;
};

}  // namespace hvd::net
