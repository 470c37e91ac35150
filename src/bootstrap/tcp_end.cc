#include "bootstrap/tcp_end.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/version.h"
#include "bootstrap/host_identity.h"
#include "gloo/library.h"
#include "net/tls_stream.h"
#include "net/visitors.h"
#include "topology/variables.h"

namespace hvd::bootstrap {
namespace {

using topology::text_variable;

constexpr Range<double> kLostHostSeconds{.least = 0.5, .most = 86400};  // as in settings.cc

}  // namespace

Result<net::Protection> protection_of(const Environment& environment) {
  HVD_TRY_ASSIGN(const auto tls, topology::integer_variable(environment, "HOROVOD_TLS", 0));
  if (!tls) return net::Protection::kGuarded;
  return *tls > 0 ? net::Protection::kAll : net::Protection::kNone;
}

Result<TcpEnd> look_at_tcp_end(const topology::Topology& topology, const Environment& environment) {
  TcpEnd end;
  HVD_TRY_ASSIGN(end.interfaces, net::all_interfaces());
  const auto names = text_variable(environment, "HOROVOD_GLOO_IFACE");
  auto usable =
      net::usable_addresses(end.interfaces, net::parse_interface_names(names.value_or("")));
  if (!usable) {
    return blame(concat("rank ", topology.rank, " (host ", topology.hostname, ")",
                        names ? ": HOROVOD_GLOO_IFACE" : ""),
                 usable.status());
  }
  end.usable = std::move(*usable);
  HVD_TRY_ASSIGN(const net::Protection protection, protection_of(environment));
  end.congestion_control = text_variable(environment, "HOROVOD_TCP_CONGESTION").value_or("");
  if (const auto text = text_variable(environment, "HOROVOD_LOST_HOST_TIME_SECONDS")) {
    const auto seconds = parse_decimal(*text, kLostHostSeconds);
    if (!seconds) return blame("HOROVOD_LOST_HOST_TIME_SECONDS", seconds.status());
    end.lost_host_time = std::chrono::milliseconds(static_cast<int64_t>(*seconds * 1e3));
  }
  end.member = {.version = version_text(),
                .rank = topology.rank,
                .size = topology.size,
                .local_rank = topology.local_rank,
                .local_size = topology.local_size,
                .host = host_identity(topology.hostname),
                .hostname = topology.hostname,
                .protection = protection,
                .has_tls = protection != net::Protection::kNone && net::load_tls().is_ok(),
                .addresses = {},
                .gloo = gloo::make_offer(environment)};
  return end;
}

std::string address_for_others(const TcpEnd& end, const Roster& roster) {
  const auto peers_near = [&](const net::Interface& own) {
    return std::count_if(roster.members.begin(), roster.members.end(), [&](const Member& member) {
      return member.host != end.member.host &&
             std::any_of(member.addresses.begin(), member.addresses.end(),
                         [&](const net::Address& theirs) {
                           return net::shares_prefix(own.address, theirs, own.prefix_length);
                         });
    });
  };
  const net::Address* best = end.usable.empty() ? nullptr : &end.usable.front();
  std::ptrdiff_t most = 0;
  for (const net::Address& address : end.usable) {
    for (const net::Interface& own : end.interfaces) {
      if (own.address.bytes != address.bytes || own.address.family != address.family) continue;
      if (address.is_link_local() || peers_near(own) <= most) continue;
      most = peers_near(own);
      best = &address;
    }
  }
  return best == nullptr ? "" : net::host_text(*best);
}

void say_what_is_open(const Member& self) {
  if (self.rank != 0 || self.protection != net::Protection::kNone) return;
  HVD_LOG(kWarning,
          "HOROVOD_TLS=0: what travels between hosts is neither encrypted nor protected against "
          "changes; whoever can write to this network can run code on every rank, through the "
          "objects that they exchange. Unset HOROVOD_TLS to protect control and objects, set it "
          "to 1 to protect tensors as well");
}

Result<net::TcpPort> listen_at(TcpEnd& end) {
  HVD_TRY_ASSIGN(net::TcpPort port, net::TcpPort::listen(end.usable));
  end.member.addresses = net::without_scopes(port.addresses());
  return port;
}

Result<std::unique_ptr<net::Mesh>> open_mesh(TcpEnd end, net::TcpPort port, const Roster& roster,
                                             const net::Key& key, uint64_t epoch,
                                             Deadline deadline) {
  std::vector<net::MeshPeer> peers;
  for (const Member& member : roster.members) {
    peers.push_back(
        {.host = member.hostname, .addresses = member.addresses, .has_tls = member.has_tls});
  }
  const net::Key mesh_key = key.derive(
      "horovod mesh", {reinterpret_cast<const uint8_t*>(roster.salt.data()), roster.salt.size()});
  const Nanoseconds longest = net::TcpMeshOptions{}.wait_time;
  const net::TcpMeshOptions options{
      .rank = end.member.rank,
      .epoch = epoch,
      .interfaces = std::move(end.interfaces),
      // Less than init waits for the streams: only the mesh knows why an address does not answer.
      .wait_time = deadline.remaining(longest) / 10 * 9,
      .congestion_control = std::move(end.congestion_control),
      .control_user_timeout = end.lost_host_time,
      .protection = end.member.protection};
  return net::make_tcp_mesh(std::move(port), std::move(peers), mesh_key, options);
}

}  // namespace hvd::bootstrap
