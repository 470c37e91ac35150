// tampering_host.h - a host between others, which takes what one of them sends to the rest: relays
// the handshakes of all connections and then changes the bytes of one kind of stream. A thread of
// the test, in the test's own namespaces.
#pragma once

#include <netinet/tcp.h>

#include <atomic>
#include <list>
#include <mutex>
#include <set>
#include <thread>

#include "net/handshake.h"
#include "net/mesh.h"
#include "store/protocol.h"
#include "tests/process/network_hosts.h"

namespace hvd::test {

enum class Tamper { kNothing, kFlip, kDrop, kRepeat, kReorder };
enum class StreamKind { kStore, kControl, kNumbers, kObjects };

struct TamperPlan {
  Tamper how = Tamper::kNothing;
  StreamKind kind = StreamKind::kControl;
  bool forth = true;     // what the dialler sends, or what it gets
  uint64_t at_byte = 0;  // of the stream behind the handshake
};

class TamperingHost {
 public:
  // `victim` and `other` are hosts of the network, `place` one that no rank runs on. From now on
  // what the victim dials at `other` and at the launcher comes through here.
  TamperingHost(NetworkHosts& hosts, std::string victim, std::string other, std::string place)
      : hosts_(hosts), other_(std::move(other)), place_(std::move(place)) {
    const std::string way = " via " + hosts.address(place_);
    // It answers for their addresses, but only when it is asked by name.
    is_ready_ = hosts.run_on(place_, "echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore") &&
                hosts.run_on(victim, "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6");
    for (const std::string& address : {hosts.address(other_), launcher_address()}) {
      is_ready_ = is_ready_ && hosts.run_on(place_, "ip addr add " + address + "/32 dev lo") &&
                  hosts.run_on(victim, "ip route add " + address + "/32" + way);
    }
    thread_ = std::jthread([this](const std::stop_token& stop) { main(stop); });
  }

  bool is_ready() const { return is_ready_; }
  void attack(const TamperPlan& plan) {
    const std::lock_guard lock(mutex_);
    plan_ = plan;
    hits_ = 0;
  }
  // Streams that were changed since.
  int hits() const { return hits_; }
  // Connections that have come through here.
  int relayed() const { return relayed_; }

 private:
  using Bytes = std::string;
  static constexpr size_t kMostWaiting = 1 << 20;
  static constexpr size_t kSpan = 16;  // bytes that are dropped, repeated or reordered

  // One direction of a connection.
  struct Way {
    uint64_t handshake_left = 0, passed = 0;
    Bytes held;  // read, and not passed on until it is known what becomes of it
    Bytes out;   // to be sent
    bool has_ended = false, is_over = false;
  };
  struct Link {
    UniqueFd dialler, acceptor;
    Bytes opening;  // until the purpose is known
    Way forth, back;
  };
  struct Listener {
    UniqueFd socket;
    std::string address;
    int port;
  };

  std::string launcher_address() const { return "10.99.0.100"; }

  static sockaddr_in socket_address(const std::string& address, int port) {
    sockaddr_in out{};
    out.sin_family = AF_INET;
    out.sin_port = htons(static_cast<uint16_t>(port));
    ::inet_pton(AF_INET, address.c_str(), &out.sin_addr);
    return out;
  }

  void main(const std::stop_token& stop) {
    auto next_look = std::chrono::steady_clock::now();
    while (!stop.stop_requested()) {
      // Ports open while nobody tells, and looking costs time.
      if (std::chrono::steady_clock::now() >= next_look) {
        follow(other_, hosts_.address(other_));
        follow("", launcher_address());
        next_look = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
      }
      std::vector<pollfd> items;
      for (const Listener& one : listeners_) items.push_back({one.socket.get(), POLLIN, 0});
      for (const Link& link : links_) {
        items.push_back({link.dialler.get(), events_of(link.forth, link.back), 0});
        items.push_back({link.acceptor.get(), events_of(link.back, link.forth), 0});
      }
      ::poll(items.data(), items.size(), 5);
      for (const Listener& one : listeners_) welcome(one);
      for (Link& link : links_) {
        relay(link, link.dialler, link.acceptor, link.forth, true);
        relay(link, link.acceptor, link.dialler, link.back, false);
      }
      links_.remove_if([](const Link& link) { return link.forth.is_over && link.back.is_over; });
    }
  }

  static short events_of(const Way& from, const Way& to) {
    const bool reads = !from.has_ended && from.out.size() < kMostWaiting;
    return static_cast<short>((reads ? POLLIN : 0) | (to.out.empty() ? 0 : POLLOUT));
  }

  // Listens wherever somebody there does.
  void follow(const std::string& host, const std::string& address) {
    for (const auto& endpoint : hosts_.listening(host)) {
      if (endpoint.address != address || !known_.insert({address, endpoint.port}).second) continue;
      Listener made{hosts_.socket_on(place_), address, endpoint.port};
      const int on = 1;
      ::setsockopt(made.socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      const sockaddr_in name = socket_address(address, endpoint.port);
      ::fcntl(made.socket.get(), F_SETFL, O_NONBLOCK);
      if (::bind(made.socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0 &&
          ::listen(made.socket.get(), 64) == 0) {
        listeners_.push_back(std::move(made));
      }
    }
  }

  void welcome(const Listener& listener) {
    for (;;) {
      UniqueFd dialler(::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!dialler.valid()) return;
      UniqueFd acceptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const sockaddr_in name = socket_address(listener.address, listener.port);
      if (::connect(acceptor.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0)
        continue;
      const int on = 1;
      for (const UniqueFd* end : {&dialler, &acceptor})
        ::setsockopt(end->get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      Link link;
      link.dialler = std::move(dialler);
      link.acceptor = std::move(acceptor);
      link.forth.handshake_left = net::kOpeningBytes + net::kProofBytes;
      link.back.handshake_left = net::kOpeningBytes;
      links_.push_back(std::move(link));
      ++relayed_;
    }
  }

  // What the dialler said it wants: everybody on the way can read that.
  static uint64_t purpose_of(const Bytes& opening) {
    uint64_t purpose = ~uint64_t{0};
    constexpr size_t kAt = net::kNonceBytes + 24;
    if (opening.size() >= kAt + sizeof purpose)
      std::memcpy(&purpose, opening.data() + kAt, sizeof purpose);
    return purpose;
  }
  static bool is_kind(uint64_t purpose, StreamKind kind) {
    const bool is_data = purpose >> 63 == 1 && purpose != ~uint64_t{0};
    switch (kind) {
      case StreamKind::kStore:
        return purpose == store::kStorePurpose;
      case StreamKind::kControl:
        return purpose == net::kControlPurpose;
      case StreamKind::kNumbers:
        return is_data && net::is_plain_lane(purpose);
      case StreamKind::kObjects:
        return is_data && !net::is_plain_lane(purpose);
    }
    return false;
  }

  void relay(Link& link, const UniqueFd& from, const UniqueFd& to, Way& way, bool forth) {
    char buffer[65536];
    while (!way.has_ended && way.out.size() < kMostWaiting) {
      const ssize_t got = ::recv(from.get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
      way.has_ended = got <= 0;
      if (way.has_ended) {
        way.out += std::exchange(way.held, {});
        break;
      }
      const Bytes bytes(buffer, static_cast<size_t>(got));
      if (forth && link.opening.size() < net::kOpeningBytes) link.opening += bytes;
      const size_t greeting = std::min<uint64_t>(way.handshake_left, bytes.size());
      way.handshake_left -= greeting;
      way.out += bytes.substr(0, greeting);
      change(link, bytes.substr(greeting), way, forth);
    }
    flush(to, way);
  }

  // One that has gone takes nothing.
  static void flush(const UniqueFd& to, Way& way) {
    while (!way.out.empty()) {
      const ssize_t sent =
          ::send(to.get(), way.out.data(), way.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EAGAIN) return;
      way.out.erase(0, sent < 0 ? way.out.size() : static_cast<size_t>(sent));
    }
    if (!way.has_ended || way.is_over) return;
    ::shutdown(to.get(), SHUT_WR);
    way.is_over = true;
  }

  void change(const Link& link, const Bytes& bytes, Way& way, bool forth) {
    if (bytes.empty()) return;
    const std::lock_guard lock(mutex_);
    const bool is_target = plan_.how != Tamper::kNothing && plan_.forth == forth &&
                           is_kind(purpose_of(link.opening), plan_.kind);
    way.held += bytes;
    const uint64_t end = plan_.at_byte + 2 * kSpan;
    if (is_target && way.passed <= plan_.at_byte) {
      // Held back from the place of the change on, until all it touches is here.
      if (way.passed + way.held.size() < end) {
        const size_t clean = std::min<uint64_t>(plan_.at_byte - way.passed, way.held.size());
        give(way, clean);
        return;
      }
      tamper(way.held, static_cast<size_t>(plan_.at_byte - way.passed));
      way.passed = end;
      ++hits_;
    }
    give(way, way.held.size());
  }

  void tamper(Bytes& bytes, size_t at) const {
    switch (plan_.how) {
      case Tamper::kNothing:
        return;
      case Tamper::kFlip:
        bytes[at] = static_cast<char>(bytes[at] ^ 1);
        return;
      case Tamper::kDrop:
        bytes.erase(at, kSpan);
        return;
      case Tamper::kRepeat:
        bytes.insert(at, bytes.substr(at, kSpan));
        return;
      case Tamper::kReorder:
        bytes = bytes.substr(0, at) + bytes.substr(at + kSpan, kSpan) + bytes.substr(at, kSpan) +
                bytes.substr(at + 2 * kSpan);
        return;
    }
  }

  static void give(Way& way, size_t count) {
    way.out += way.held.substr(0, count);
    way.held.erase(0, count);
    way.passed += count;
  }

  NetworkHosts& hosts_;
  const std::string other_, place_;
  bool is_ready_ = false;
  std::mutex mutex_;
  TamperPlan plan_;
  std::atomic<int> hits_{0}, relayed_{0};
  std::set<std::pair<std::string, int>> known_;
  std::vector<Listener> listeners_;
  std::list<Link> links_;
  std::jthread thread_;  // last
};

}  // namespace hvd::test
