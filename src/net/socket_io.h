// socket_io.h - sending and receiving on a non-blocking socket, and what its errors mean to a
// stream. Any thread; never blocks.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <span>

#include "base/status.h"

namespace hvd::net {

// How many bytes went; 0: not now. Errors are PEER_LOST and the text of the kernel.
Result<size_t> send_some(int socket, std::span<const iovec> parts);
// The end of the stream is an error, unless nothing was asked for.
Result<size_t> receive_some(int socket, std::span<const iovec> parts);

}  // namespace hvd::net
