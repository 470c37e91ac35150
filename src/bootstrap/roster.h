// roster.h - what each rank says about itself, what all of it together means, and how both travel
// through the store. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "gloo/choice.h"
#include "net/address.h"
#include "net/tcp_mesh.h"
#include "topology/hosts.h"

namespace hvd::bootstrap {

struct Member {
  std::string version;  // of horovod
  int32_t rank = 0, size = 1;
  int32_t local_rank = 0, local_size = 1;
  std::string host;                                        // identity
  std::string hostname;                                    // for people
  net::Protection protection = net::Protection::kGuarded;  // HOROVOD_TLS
  bool has_tls = false;                                    // OpenSSL is there
  std::vector<net::Address> addresses;
  gloo::Offer gloo{};
  std::string fresh{};  // random, of this init: tells it from earlier ones

  bool operator==(const Member&) const = default;
};

std::string encode_member(const Member& member);
// CORRUPTED for anything that encode_member did not write.
Result<Member> decode_member(std::string_view bytes);

// All members by rank, or why there is no job; and random bytes that make the job's keys its own.
struct Roster {
  Status failure{};
  std::string salt{};
  std::vector<Member> members{};
};
std::string encode_roster(const Roster& roster);
Result<Roster> decode_roster(std::string_view bytes);

// Does `member` fit to rank 0? It is known to have this rank.
Status check_member(const Member& rank0, const Member& member);

// Groups the members by host. Fails when local ranks do not count up from 0 on a host; the message
// names the ranks and hosts.
Result<topology::HostMap> make_host_map(std::span<const Member> members);

// Whether Gloo carries the data between hosts; the same on all ranks.
Result<gloo::Decision> decide_on_gloo(std::span<const Member> members);

// "rank 3 (host b)"
std::string member_text(const Member& member);

}  // namespace hvd::bootstrap
