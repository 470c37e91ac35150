#include "bootstrap/store_place.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>

#include "base/parse.h"
#include "base/text.h"
#include "topology/variables.h"

namespace hvd::bootstrap {
namespace {

using topology::text_variable;

constexpr char kHowToStart[] =
    "this job has ranks on several hosts, but nothing says how they find each other: start it with "
    "horovodrun; or with mpirun or torchrun and a front end that passes their store on; or set on "
    "every rank HOROVOD_RENDEZVOUS_ADDR and HOROVOD_RENDEZVOUS_PORT (a free port of rank 0's host) "
    "and HOROVOD_KEY_FILE (a file with 32 random bytes, mode 0600, the same on every host)";

// Names of pods and of containers that start may not resolve at once.
constexpr auto kPauseBetweenLookups = std::chrono::milliseconds(200);

Result<std::vector<net::Address>> look_up(const std::string& name, uint16_t port, int& error) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  error = getaddrinfo(name.c_str(), nullptr, &hints, &raw);
  if (error != 0)
    return unknown_error(concat("cannot resolve '", name, "': ", gai_strerror(error)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(raw, freeaddrinfo);
  std::vector<net::Address> out;
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    auto address = net::from_socket_address(at->ai_addr);
    if (!address) continue;
    address->port = port;
    if (std::find(out.begin(), out.end(), *address) == out.end()) out.push_back(*address);
  }
  return out;
}

Result<std::vector<net::Address>> resolve(const std::string& name, uint16_t port,
                                          Deadline deadline) {
  if (const auto numeric = net::parse_host(name, port)) return std::vector{*numeric};
  for (;;) {
    int error = 0;
    auto found = look_up(name, port, error);
    const bool may_come = error == EAI_AGAIN || error == EAI_NONAME || error == EAI_NODATA;
    if (found.is_ok() && !found->empty()) return found;
    if (!found && !may_come) return found;
    if (deadline.passed()) {
      return Status(StatusCode::kTimedOut,
                    found ? concat("'", name, "' has no address") : found.status().message());
    }
    const timespec pause{0, Nanoseconds(kPauseBetweenLookups).count()};
    ppoll(nullptr, 0, &pause, nullptr);
  }
}

struct Pair {
  const char* address;
  const char* port;
};
// Later ones are those of other launchers, which may be set although the user chose an earlier.
constexpr Pair kPairs[] = {
    {"HOROVOD_RENDEZVOUS_ADDR", "HOROVOD_RENDEZVOUS_PORT"},
    {"HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT"},
    // MASTER_PORT belongs to torch, which has it bound already.
    {"MASTER_ADDR", "HOROVOD_STORE_PORT"},
};

}  // namespace

Result<StorePlace> find_store_place(const Environment& environment, Deadline deadline) {
  if (const auto text = text_variable(environment, "HOROVOD_STORE_ADDRESSES")) {
    auto addresses = net::parse_addresses(*text);
    if (!addresses) return blame("HOROVOD_STORE_ADDRESSES", addresses.status());
    return StorePlace{.host = StorePlace::Host::kLauncher,
                      .source = "HOROVOD_STORE_ADDRESSES",
                      .addresses = std::move(*addresses)};
  }
  for (const auto& [address_name, port_name] : kPairs) {
    const auto address = text_variable(environment, address_name);
    const auto port_text = text_variable(environment, port_name);
    if (!address || !port_text) continue;
    const auto port = parse_integer(*port_text, {.least = 1, .most = 65535});
    if (!port) return blame(port_name, port.status());
    auto addresses = resolve(std::string(trim(*address)), static_cast<uint16_t>(*port), deadline);
    if (!addresses) return blame(address_name, addresses.status());
    return StorePlace{.host = StorePlace::Host::kRank0,
                      .source = address_name,
                      .addresses = std::move(*addresses)};
  }
  return precondition_error(kHowToStart);
}

Result<std::optional<net::Key>> find_key(const Environment& environment, Deadline deadline) {
  if (const auto text = text_variable(environment, "HOROVOD_KEY_FD")) {
    const auto fd = parse_integer(*text, {.least = 0, .most = INT32_MAX});
    if (!fd) return blame("HOROVOD_KEY_FD", fd.status());
    auto key = net::Key::from_descriptor(static_cast<int>(*fd), deadline);
    if (!key) return blame("HOROVOD_KEY_FD", key.status());
    return std::optional(*key);
  }
  if (const auto path = text_variable(environment, "HOROVOD_KEY_FILE")) {
    auto key = net::Key::from_file(*path);
    if (!key) return blame("HOROVOD_KEY_FILE", key.status());
    return std::optional(*key);
  }
  return std::optional<net::Key>();
}

std::vector<net::Address> addresses_to_bind(const StorePlace& place,
                                            std::span<const net::Interface> interfaces,
                                            std::span<const net::Address> usable) {
  std::vector<net::Address> out;
  for (const net::Address& address : place.addresses) {
    const bool own = std::any_of(interfaces.begin(), interfaces.end(), [&](const auto& one) {
      return one.address.family == address.family && one.address.bytes == address.bytes;
    });
    // All of 127.0.0.0/8 is this host's, and none of it has an interface of its own.
    if (own || address.is_loopback()) out.push_back(address);
  }
  if (!out.empty()) return out;
  out.assign(usable.begin(), usable.end());
  for (net::Address& address : out) address.port = place.addresses.front().port;
  return out;
}

}  // namespace hvd::bootstrap
