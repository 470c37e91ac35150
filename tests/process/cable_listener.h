// cable_listener.h - whoever reads what passes the cable of a host, in the test's own namespaces.
#pragma once

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace hvd::test {

// Everything that passes the cable of a host.
class CableListener {
 public:
  bool start(const char* interface) {
    socket_.reset(::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL)));
    const int room = 256 << 20;
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    sockaddr_ll place{};
    place.sll_family = AF_PACKET;
    place.sll_protocol = htons(ETH_P_ALL);
    place.sll_ifindex = static_cast<int>(::if_nametoindex(interface));
    return ::bind(socket_.get(), reinterpret_cast<sockaddr*>(&place), sizeof place) == 0;
  }
  // What has passed so far, packet after packet.
  const std::string& heard() {
    std::string packet(128 << 10, '\0');
    for (;;) {
      const ssize_t count = ::recv(socket_.get(), packet.data(), packet.size(), 0);
      if (count <= 0) return heard_;
      heard_.append(packet.data(), static_cast<size_t>(count));
    }
  }

 private:
  UniqueFd socket_;
  std::string heard_;
};

// A run of one number among what two ranks of the role `objects` give to a sum or get from it
// (host_worker.h); which of them travels is up to the algorithm.
inline bool has_numbers(const std::string& heard) {
  const auto has = [&](float number) {
    const std::vector<float> run(256, number);
    return heard.find(std::string_view(reinterpret_cast<const char*>(run.data()),
                                       run.size() * sizeof(float))) != std::string::npos;
  };
  return has(1) || has(2) || has(3);
}

}  // namespace hvd::test
