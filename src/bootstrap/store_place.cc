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

constexpr char kNoPlace[] =
    "this job has ranks on several hosts, but nothing says how they find each other: ";
constexpr char kByHand[] =
    "set on every rank HOROVOD_RENDEZVOUS_ADDR and HOROVOD_RENDEZVOUS_PORT (a free port of rank "
    "0's "
    "host) and HOROVOD_KEY_FILE (a file with 32 random bytes, mode 0600, the same on every host), "
    "or "
    "use horovodrun";
constexpr char kKeyFile[] =
    "HOROVOD_KEY_FILE to a file with 32 random bytes (head -c 32 /dev/urandom), mode 0600, that "
    "every host sees";

// What is missing differs from launcher to launcher.
std::string how_to_start(topology::Launcher launcher) {
  using topology::Launcher;
  switch (launcher) {
    case Launcher::kTorchrun:
      return concat(
          "horovod.torch passes torchrun's own store on; another program sets "
          "HOROVOD_STORE_PORT (a free port of MASTER_ADDR) and ",
          kKeyFile);
    case Launcher::kSlurm:
      return concat("start it with srun --mpi=pmi2, or set ", kKeyFile);
    case Launcher::kIndexedJob:
      return concat(
          "the pods need a headless service as their subdomain, and the key a mounted secret: set ",
          kKeyFile);
    case Launcher::kSageMaker:
      return concat("set ", kKeyFile);
    default:
      return kByHand;
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

bool names_store(const Environment& environment) {
  const auto is_set = [&](const char* name) {
    return text_variable(environment, name).has_value();
  };
  return is_set("HOROVOD_STORE_ADDRESSES") ||
         std::any_of(std::begin(kPairs), std::end(kPairs),
                     [&](const Pair& pair) { return is_set(pair.address) && is_set(pair.port); });
}

Result<std::optional<StorePlace>> named_store_place(const Environment& environment,
                                                    Deadline deadline) {
  if (const auto text = text_variable(environment, "HOROVOD_STORE_ADDRESSES")) {
    auto addresses = net::parse_addresses(*text);
    if (!addresses) return blame("HOROVOD_STORE_ADDRESSES", addresses.status());
    return std::optional(StorePlace{.host = StorePlace::Host::kLauncher,
                                    .source = "HOROVOD_STORE_ADDRESSES",
                                    .addresses = std::move(*addresses)});
  }
  for (const auto& [address_name, port_name] : kPairs) {
    const auto address = text_variable(environment, address_name);
    const auto port_text = text_variable(environment, port_name);
    if (!address || !port_text) continue;
    const auto port = parse_integer(*port_text, {.least = 1, .most = 65535});
    if (!port) return blame(port_name, port.status());
    auto addresses = resolve(std::string(trim(*address)), static_cast<uint16_t>(*port), deadline);
    if (!addresses) return blame(address_name, addresses.status());
    return std::optional(StorePlace{.host = StorePlace::Host::kRank0,
                                    .source = address_name,
                                    .addresses = std::move(*addresses)});
  }
  return std::optional<StorePlace>();
}

Result<StorePlace> launcher_store_place(const topology::Topology& topology,
                                        const Environment& environment, Deadline deadline) {
  HVD_TRY_ASSIGN(const auto chosen,
                 topology::integer_variable(environment, "HOROVOD_STORE_PORT", 1));
  if (chosen && *chosen > 65535) {
    return invalid_argument(concat("HOROVOD_STORE_PORT: expected 1 to 65535, got ", *chosen));
  }
  const auto port = static_cast<uint16_t>(chosen.value_or(topology.store_port));
  if (topology.first_host.empty() || port == 0) {
    return precondition_error(concat("rank ", topology.rank, " (host ", topology.hostname,
                                     "): ", kNoPlace, how_to_start(topology.launcher)));
  }
  auto addresses = resolve(topology.first_host, port, deadline);
  if (!addresses) {
    return blame(concat("the first host of the job, '", topology.first_host, "'"),
                 addresses.status());
  }
  return StorePlace{.host = StorePlace::Host::kRank0,
                    .source = concat("the first host of the job, ", topology.first_host),
                    .addresses = std::move(*addresses)};
}

Status missing_key(const topology::Topology& topology, const StorePlace& place) {
  return precondition_error(concat("rank ", topology.rank, " (host ", topology.hostname,
                                   "): the ranks meet at ", net::to_text(place.addresses), " (",
                                   place.source,
                                   "), but there is no key: ", how_to_start(topology.launcher)));
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

std::optional<net::Key> find_host_secret(const Environment& environment) {
  const auto path = text_variable(environment, "HOROVOD_KEY_FILE");
  if (!path) return std::nullopt;
  const auto key = net::Key::from_file(*path);
  if (!key) return std::nullopt;
  return key->derive("horovod host", {});
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
