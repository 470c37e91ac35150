// tcp_mesh.h - a Mesh over TCP: this rank's acceptor, and a dialler per stream that is asked for.
// Any thread; never blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "net/acceptor.h"
#include "net/address.h"
#include "net/dialler.h"
#include "net/interfaces.h"
#include "net/keys/key.h"
#include "net/mesh.h"
#include "net/tcp_stream.h"

namespace hvd::net {

struct MeshPeer {
  std::string host;  // its name, for messages
  std::vector<Address> addresses;
  bool has_tls = false;  // can it speak TLS?
};

// Which streams between hosts are encrypted and authenticated.
enum class Protection : uint8_t {
  kNone = 0,     // HOROVOD_TLS=0
  kGuarded = 1,  // control and objects
  kAll = 2,      // HOROVOD_TLS=1: all, with TLS
};

struct TcpMeshOptions {
  int32_t rank = 0;
  uint64_t epoch = 0;
  std::vector<Interface> interfaces{};  // of this host, to put a peer's addresses in order
  DialOptions dial{};
  AcceptorOptions accept{};
  // How long connect() waits for a peer that is to dial us.
  Nanoseconds wait_time = std::chrono::seconds(30);
  std::string congestion_control{};
  // For the control streams, which are always read (see TcpOptions):
  // HOROVOD_LOST_HOST_TIME_SECONDS.
  std::chrono::milliseconds control_user_timeout{2500};
  // With TLS where both ends have it, otherwise with our own records (sealed_stream.h).
  Protection protection = Protection::kGuarded;
};

// Listening comes first, since peers must be told the addresses; the mesh follows when all are
// known. Connections that come between the two wait in the backlog of the kernel.
class TcpPort {
 public:
  static Result<TcpPort> listen(std::span<const Address> addresses);
  const std::vector<Address>& addresses() const { return listener_.addresses(); }

 private:
  friend Result<std::unique_ptr<Mesh>> make_tcp_mesh(TcpPort, std::vector<MeshPeer>, const Key&,
                                                     const TcpMeshOptions&);
  explicit TcpPort(Listener listener) : listener_(std::move(listener)) {}
  Listener listener_;
};

// `peers` has one entry per rank, this one included. The same protection and the same entries on
// all ranks.
Result<std::unique_ptr<Mesh>> make_tcp_mesh(TcpPort port, std::vector<MeshPeer> peers,
                                            const Key& key, const TcpMeshOptions& options);

}  // namespace hvd::net
