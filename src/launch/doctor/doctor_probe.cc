#include "launch/doctor/doctor_probe.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "base/text.h"
#include "launch/os/now.h"
#include "net/dialler.h"
#include "net/interfaces.h"
#include "net/listener.h"
#include "net/packing.h"
#include "net/tcp_stream.h"

namespace hvd::launch {
namespace {

// What a connection is for; any other purpose is refused.
constexpr uint64_t kPing = 1;    // every byte comes back
constexpr uint64_t kStream = 2;  // bytes are counted; at their end the count comes back

constexpr int kPings = 50;
constexpr Nanoseconds kStreamTime = std::chrono::milliseconds(300);
constexpr size_t kBlockBytes = size_t{256} << 10;

bool wait_for(int socket, short events, Deadline deadline) {
  pollfd watch{socket, events, 0};
  const Nanoseconds left = deadline.remaining(std::chrono::hours(1));
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return ::poll(&watch, 1, static_cast<int>(milliseconds)) == 1;
}

// All of `size` bytes, or false.
bool receive_all(int socket, char* to, size_t size, Deadline deadline) {
  while (size > 0) {
    const ssize_t count = ::recv(socket, to, size, MSG_DONTWAIT);
    if (count > 0) {
      to += count;
      size -= static_cast<size_t>(count);
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
      return false;
    } else if (!wait_for(socket, POLLIN, deadline)) {
      return false;
    }
  }
  return true;
}

Result<UniqueFd> open_connection(const std::string& who, std::string_view addresses,
                                 const net::Key& key, uint64_t purpose, Deadline deadline,
                                 std::string& reached) {
  HVD_TRY_ASSIGN(const std::vector<net::Address> all, net::parse_addresses(addresses));
  HVD_TRY_ASSIGN(const std::vector<net::Interface> own, net::all_interfaces());
  HVD_TRY_ASSIGN(std::unique_ptr<net::Dialler::Connected> connected,
                 net::dial(who, net::dial_order(all, own), key, {.purpose = purpose}, deadline));
  HVD_TRY(net::prepare_tcp_socket(connected->socket.get(), {}));
  reached = net::to_text(connected->address);
  return std::move(connected->socket);
}

Result<Nanoseconds> measure_round_trip(int socket, Deadline deadline) {
  Nanoseconds best = std::chrono::hours(1);
  for (int i = 0; i < kPings; ++i) {
    char byte = 'p';
    const TimePoint sent_at = now();
    if (::send(socket, &byte, 1, MSG_NOSIGNAL) != 1 || !receive_all(socket, &byte, 1, deadline)) {
      return precondition_error("the connection broke while it was measured");
    }
    best = std::min<Nanoseconds>(best, now() - sent_at);
  }
  return best;
}

Result<uint64_t> measure_rate(int socket, Deadline deadline) {
  const std::vector<char> block(kBlockBytes);
  const TimePoint began_at = now();
  while (now() - began_at < kStreamTime) {
    const ssize_t count = ::send(socket, block.data(), block.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno != EAGAIN && errno != EINTR) {
      return precondition_error("the connection broke while it was measured");
    }
    if (count < 0) wait_for(socket, POLLOUT, deadline);
  }
  ::shutdown(socket, SHUT_WR);
  std::array<char, sizeof(uint64_t)> answer{};
  if (!receive_all(socket, answer.data(), answer.size(), deadline)) {
    return precondition_error("the bytes that were sent did not arrive in time");
  }
  const std::chrono::duration<double> took = now() - began_at;
  const auto bytes = net::Unpacker({answer.data(), answer.size()}).get<uint64_t>();
  return static_cast<uint64_t>(static_cast<double>(bytes) / took.count());
}

Status measure(const std::string& who, std::string_view addresses, const net::Key& key,
               Deadline deadline, ProbeResult& result) {
  HVD_TRY_ASSIGN(const UniqueFd ping,
                 open_connection(who, addresses, key, kPing, deadline, result.address));
  HVD_TRY_ASSIGN(result.round_trip, measure_round_trip(ping.get(), deadline));
  HVD_TRY_ASSIGN(const UniqueFd stream,
                 open_connection(who, addresses, key, kStream, deadline, result.address));
  HVD_TRY_ASSIGN(result.bytes_per_second, measure_rate(stream.get(), deadline));
  return Status::ok();
}

}  // namespace

Result<ProbeServer> ProbeServer::start(const net::Key& key,
                                       const std::vector<std::string>& interfaces) {
  HVD_TRY_ASSIGN(const std::vector<net::Interface> all, net::all_interfaces());
  HVD_TRY_ASSIGN(const std::vector<net::Address> addresses, net::usable_addresses(all, interfaces));
  HVD_TRY_ASSIGN(net::Listener listener, net::Listener::listen(addresses));
  HVD_TRY_ASSIGN(std::unique_ptr<net::Acceptor> acceptor,
                 net::Acceptor::create(std::move(listener), key, {}, [](const net::Hello& hello) {
                   return hello.purpose == kPing || hello.purpose == kStream
                              ? net::Verdict::kWelcome
                              : net::Verdict::kUnexpected;
                 }));
  return ProbeServer(std::move(acceptor));
}

std::string ProbeServer::addresses() const { return net::to_text(acceptor_->addresses()); }

void ProbeServer::watch(PollSet& polls) {
  guests_.remove_if([](const Guest& guest) { return !guest.socket.valid(); });
  polls.watch(acceptor_->descriptor(), POLLIN, [this] {
    for (net::Accepted& accepted : acceptor_->poll()) {
      guests_.push_back({.socket = std::move(accepted.socket), .purpose = accepted.hello.purpose});
    }
  });
  for (Guest& guest : guests_) {
    polls.watch(guest.socket.get(), POLLIN, [&guest] { serve(guest); });
  }
}

void ProbeServer::serve(Guest& guest) {
  static std::array<char, kBlockBytes> buffer;  // this thread alone
  const ssize_t count = ::recv(guest.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count > 0 && guest.purpose == kStream) {
    guest.received_bytes += static_cast<uint64_t>(count);
    return;
  }
  if (count > 0) {
    const auto size = static_cast<size_t>(count);
    if (::send(guest.socket.get(), buffer.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT) == count) {
      return;
    }
  } else if (count == 0 && guest.purpose == kStream) {
    std::string answer;
    net::put(answer, guest.received_bytes);
    // A fresh socket has room for eight bytes; if not, the prober says that it waited in vain.
    [[maybe_unused]] const ssize_t sent =
        ::send(guest.socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  guest.socket.reset();
}

ProbeResult probe(const std::string& who, std::string_view addresses, const net::Key& key,
                  Deadline deadline) {
  ProbeResult result;
  const Status measured = measure(who, addresses, key, deadline, result);
  if (!measured.is_ok()) result.failure = measured.message();
  return result;
}

std::string encode(const ProbeResult& result) {
  std::string out;
  net::put_text(out, result.address);
  net::put_text(out, result.failure);
  net::put(out, static_cast<int64_t>(result.round_trip.count()));
  net::put(out, result.bytes_per_second);
  return out;
}

Result<ProbeResult> decode_probe(std::string_view payload) {
  net::Unpacker in(payload);
  ProbeResult result;
  result.address = in.get_text();
  result.failure = in.get_text();
  result.round_trip = Nanoseconds(in.get<int64_t>());
  result.bytes_per_second = in.get<uint64_t>();
  if (!in.is_complete()) return corrupted("the probe message is damaged");
  return result;
}

}  // namespace hvd::launch
