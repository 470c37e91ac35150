#include "launch/plan/local_names.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/fd.h"
#include "launch/plan/hosts.h"

namespace hvd::launch {
namespace {

// Names are dealt out to so many processes: most of the time is spent waiting for a name server.
constexpr size_t kResolvers = 16;

struct Answer {
  uint32_t index;
  uint32_t is_local;
};

// Family and bytes of an address, without port.
std::string address_key(const sockaddr* address) {
  std::string key(1, static_cast<char>(address->sa_family));
  if (address->sa_family == AF_INET) {
    in_addr ip{};
    std::memcpy(&ip, reinterpret_cast<const char*>(address) + offsetof(sockaddr_in, sin_addr),
                sizeof ip);
    key.append(reinterpret_cast<const char*>(&ip), sizeof ip);
  } else if (address->sa_family == AF_INET6) {
    in6_addr ip{};
    std::memcpy(&ip, reinterpret_cast<const char*>(address) + offsetof(sockaddr_in6, sin6_addr),
                sizeof ip);
    key.append(reinterpret_cast<const char*>(&ip), sizeof ip);
  }
  return key;
}

bool is_loopback(const sockaddr* address) {
  const std::string key = address_key(address);
  if (address->sa_family == AF_INET) return key[1] == 127;
  return std::memcmp(key.data() + 1, &in6addr_loopback, sizeof in6addr_loopback) == 0;
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> keys;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return keys;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family == AF_INET || family == AF_INET6) keys.push_back(address_key(entry->ifa_addr));
  }
  ::freeifaddrs(list);
  return keys;
}

bool is_among(std::span<const std::string> own, const sockaddr* address) {
  return is_loopback(address) ||
         std::find(own.begin(), own.end(), address_key(address)) != own.end();
}

// A name is ours if its first address is: others may be those of a container bridge, which many
// hosts share. May block for as long as the resolver does.
bool resolves_to_us(const std::string& name, std::span<const std::string> own) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) return false;
  const bool is_ours = is_among(own, found->ai_addr);
  ::freeaddrinfo(found);
  return is_ours;
}

[[noreturn]] void resolve_share(std::span<const std::string> names,
                                std::span<const uint32_t> indices, size_t share, int out) {
  const std::vector<std::string> own = own_addresses();
  for (size_t i = share; i < indices.size(); i += kResolvers) {
    const Answer answer{indices[i], resolves_to_us(names[indices[i]], own) ? 1U : 0U};
    if (::write(out, &answer, sizeof answer) != static_cast<ssize_t>(sizeof answer)) break;
  }
  ::_exit(0);
}

void read_answers(int pipe, size_t expected, Deadline deadline, std::vector<bool>& is_local) {
  for (size_t count = 0; count < expected; ++count) {
    pollfd watch{pipe, POLLIN, 0};
    const Nanoseconds left = deadline.remaining(std::chrono::hours(1));
    ::poll(&watch, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
    Answer answer{};
    // Answers are smaller than PIPE_BUF, so they come whole.
    if (watch.revents == 0 ||
        ::read(pipe, &answer, sizeof answer) != static_cast<ssize_t>(sizeof answer)) {
      return;
    }
    is_local[answer.index] = answer.is_local == 1;
  }
}

}  // namespace

std::vector<bool> find_local_names(std::span<const std::string> names,
                                   const std::string& own_hostname, Deadline deadline) {
  std::vector<bool> is_local(names.size());
  std::vector<uint32_t> unknown;
  for (uint32_t i = 0; i < names.size(); ++i) {
    is_local[i] = is_own_name(names[i], own_hostname);
    if (!is_local[i]) unknown.push_back(i);
  }
  int ends[2];
  if (unknown.empty() || ::pipe2(ends, O_CLOEXEC) != 0) return is_local;
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  std::vector<pid_t> resolvers;
  for (size_t share = 0; share < std::min(kResolvers, unknown.size()); ++share) {
    const pid_t pid = ::fork();
    if (pid == 0) resolve_share(names, unknown, share, write_end.get());
    if (pid > 0) resolvers.push_back(pid);
  }
  write_end.reset();
  read_answers(read_end.get(), unknown.size(), deadline, is_local);
  for (pid_t pid : resolvers) {
    ::kill(pid, SIGKILL);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  return is_local;
}

bool is_own_address(const sockaddr* address) { return is_among(own_addresses(), address); }

}  // namespace hvd::launch
