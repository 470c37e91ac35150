#include "launch/link/meeting_place.h"

#include <netdb.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/parse.h"
#include "base/text.h"
#include "launch/plan/hosts.h"
#include "launch/plan/local_names.h"
#include "net/interfaces.h"

namespace hvd::launch {
namespace {

// Names of pods and of containers that start may not resolve at once.
constexpr int kPauseBetweenLookupsMs = 200;

Status not_understood(std::string_view text) {
  return invalid_argument(
      concat("--join: expected HOST:PORT, for example gpu1:4711, got '", text, "'"));
}

std::vector<net::Address> look_up(const MeetingPlace& place, int& error) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  error = ::getaddrinfo(place.host.c_str(), nullptr, &hints, &raw);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(error == 0 ? raw : nullptr,
                                                            [](addrinfo* one) {
                                                              if (one != nullptr)
                                                                ::freeaddrinfo(one);
                                                            });
  std::vector<net::Address> found;
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    auto address = net::from_socket_address(at->ai_addr);
    if (!address) continue;
    address->port = place.port;
    if (std::find(found.begin(), found.end(), *address) == found.end()) found.push_back(*address);
  }
  return found;
}

}  // namespace

Result<MeetingPlace> parse_meeting_place(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return not_understood(text);
  std::string_view host = text.substr(0, colon);
  const auto port = parse_integer(text.substr(colon + 1), {1, 65535});
  if (!port) return not_understood(text);
  const bool is_bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (is_bracketed) host = host.substr(1, host.size() - 2);
  const bool is_bare_ipv6 = !is_bracketed && host.find(':') != std::string_view::npos;
  if (is_bare_ipv6 || !check_host_name(host).is_ok()) return not_understood(text);
  return MeetingPlace{.host = std::string(host), .port = static_cast<uint16_t>(*port)};
}

Result<std::vector<net::Address>> resolve(const MeetingPlace& place, Deadline deadline,
                                          const std::function<void()>& on_unknown) {
  if (const auto numeric = net::parse_host(place.host, place.port)) return std::vector{*numeric};
  for (bool is_first = true;; is_first = false) {
    int error = 0;
    auto found = look_up(place, error);
    if (!found.empty()) return found;
    const bool may_come =
        error == 0 || error == EAI_AGAIN || error == EAI_NONAME || error == EAI_NODATA;
    if (!may_come || deadline.passed()) {
      return precondition_error(concat("--join: cannot resolve '", place.host,
                                       "': ", error == 0 ? "no address" : ::gai_strerror(error)));
    }
    if (is_first) on_unknown();
    ::poll(nullptr, 0, kPauseBetweenLookupsMs);
  }
}

bool is_this_host(const std::vector<net::Address>& addresses) {
  return !addresses.empty() && is_own_address(net::to_socket_address(addresses.front()).get());
}

Result<std::vector<net::Address>> listening_addresses(const MeetingPlace& place,
                                                      const std::vector<std::string>& interfaces) {
  HVD_TRY_ASSIGN(std::vector<net::Interface> all, net::all_interfaces());
  if (interfaces.empty() && is_loopback_name(place.host)) {
    std::erase_if(all, [](const net::Interface& one) { return !one.is_loopback; });
  }
  auto addresses = net::usable_addresses(all, interfaces);
  if (!addresses && !interfaces.empty()) {
    return invalid_argument(blame("--network-interfaces", addresses.status()).message());
  }
  if (!addresses) return addresses.status();
  // Nobody names one: its scope means nothing on another host.
  std::erase_if(*addresses, [](const net::Address& one) { return one.is_link_local(); });
  if (addresses->empty()) return precondition_error("--join: this host has no address");
  for (net::Address& address : *addresses) address.port = place.port;
  return addresses;
}

Result<net::Listener> listen_on_usable(const std::vector<net::Address>& addresses) {
  HVD_TRY_ASSIGN(net::Listener listener, net::Listener::listen(addresses));
  for (const net::Listener::LeftOut& one : listener.left_out()) {
    if (one.error == EAFNOSUPPORT || one.error == EADDRNOTAVAIL) continue;
    return precondition_error(
        concat("cannot listen on ", net::to_text(one.address), ": ", one.what));
  }
  return listener;
}

}  // namespace hvd::launch
