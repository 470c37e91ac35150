// strangers.h - what somebody does who reaches the ports of a job and does not belong to it. Only
// inside the networks that a test made.
#pragma once

#include <sys/resource.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "tests/process/network_hosts.h"

namespace hvd::test {

// Invalid where the endpoint is none that this network reaches.
inline UniqueFd connect_to(const NetworkHosts::Endpoint& endpoint, int more_flags = 0) {
  if (endpoint.family != AF_INET) return UniqueFd();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(endpoint.port));
  ::inet_pton(AF_INET, endpoint.address.c_str(), &address.sin_addr);
  UniqueFd made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | more_flags, 0));
  if (::connect(made.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 &&
      errno != EINPROGRESS) {
    return UniqueFd();
  }
  return made;
}

inline void send_all(const UniqueFd& socket, const uint8_t* data, size_t bytes) {
  // It may be closed by now, which is as good.
  [[maybe_unused]] const ssize_t sent = ::send(socket.get(), data, bytes, MSG_NOSIGNAL);
}

// Opens `count` connections to every port of the hosts as soon as it is there, half of them silent
// and half with a byte every now and then, until the object goes.
class Flood {
 public:
  Flood(const NetworkHosts& hosts, std::vector<std::string> names, size_t count)
      : hosts_(hosts), names_(std::move(names)), count_(count) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  // Waits until so many ports have got all their strangers; not longer than the job lives.
  bool reaches(size_t ports, const LaunchedJob& job) const {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (flooded_.load() < ports && std::chrono::steady_clock::now() < deadline) {
      if (job.has_ended_within(std::chrono::milliseconds(1))) break;
    }
    return flooded_.load() >= ports;
  }

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      for (const std::string& name : names_) {
        for (const NetworkHosts::Endpoint& one : hosts_.listening(name)) {
          if (known_.insert({one.address, one.port}).second) flood(one, stop);
        }
      }
      for (size_t i = 0; i < sockets_.size(); i += 2) {
        if (sockets_[i].valid()) send_byte(sockets_[i]);
      }
    }
  }
  void flood(const NetworkHosts::Endpoint& endpoint, const std::stop_token& stop) {
    size_t made = 0;
    for (size_t i = 0; i < count_ && !stop.stop_requested(); ++i) {
      // A full backlog must not make the flood wait.
      sockets_.push_back(connect_to(endpoint, SOCK_NONBLOCK));
      if (sockets_.back().valid()) ++made;
    }
    if (made == count_) ++flooded_;
  }
  static void send_byte(const UniqueFd& socket) {
    [[maybe_unused]] const ssize_t sent = ::send(socket.get(), "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  const NetworkHosts& hosts_;
  std::vector<std::string> names_;
  size_t count_;
  std::set<std::pair<std::string, int>> known_;
  std::vector<UniqueFd> sockets_;
  std::atomic<size_t> flooded_{0};  // publishes nothing else
  std::jthread thread_;             // last
};

}  // namespace hvd::test
