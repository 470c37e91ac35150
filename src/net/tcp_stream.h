// tcp_stream.h - a Stream over a connected socket (TCP, or a socket pair in tests). Threads as in
// stream.h; never blocks.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/status.h"
#include "net/stream.h"

namespace hvd::net {

struct TcpOptions {
  // How long sent bytes may stay unacknowledged, or a full receiver full, before the kernel calls
  // the connection dead; 0: its own patience. Only for streams whose other end always reads: the
  // kernel does not tell a slow reader from a dead one.
  std::chrono::milliseconds user_timeout{0};
  // HOROVOD_TCP_CONGESTION, for example "bbr"; empty: the system's choice.
  std::string congestion_control{};
};

// No delay, keep-alive (a silent host is noticed in 4 s even when nothing is sent), and the
// options.
Status prepare_tcp_socket(int socket, const TcpOptions& options);

// Takes the socket as it is and makes it non-blocking. `peer` as Stream::peer() gives it.
std::unique_ptr<Stream> make_socket_stream(UniqueFd socket, std::string peer);

}  // namespace hvd::net
