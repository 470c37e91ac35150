#include "bootstrap/roster.h"

#include <algorithm>
#include <map>

#include "base/parse.h"
#include "base/text.h"
#include "net/packing.h"

namespace hvd::bootstrap {
namespace {

using net::put;
using net::put_text;

constexpr uint32_t kMostRanks = 1u << 20;
constexpr char kLocalHint[] =
    "; set HOROVOD_LOCAL_RANK and HOROVOD_LOCAL_SIZE to count the ranks of each host";

std::string ranks_text(std::span<const int32_t> ranks) {
  return concat(ranks.size() == 1 ? "rank " : "ranks ", join_text(ranks, ", ", 16));
}

const char* setting_text(net::Protection protection) {
  switch (protection) {
    case net::Protection::kNone:
      return "0";
    case net::Protection::kGuarded:
      return "unset";
    case net::Protection::kAll:
      return "1";
  }
  return "";
}

Status check_host(std::span<const Member> members, std::span<const int32_t> ranks) {
  std::map<int32_t, int32_t> by_local_rank;
  for (const int32_t rank : ranks) {
    const Member& member = members[static_cast<size_t>(rank)];
    const auto [first, fresh] = by_local_rank.emplace(member.local_rank, rank);
    if (!fresh) {
      return precondition_error(concat(
          member_text(members[static_cast<size_t>(first->second)]), " and ", member_text(member),
          " run on the same host, and both have local rank ", member.local_rank, kLocalHint));
    }
  }
  for (const int32_t rank : ranks) {
    const Member& member = members[static_cast<size_t>(rank)];
    if (member.local_size == static_cast<int32_t>(ranks.size())) continue;
    const auto elsewhere = std::find_if(members.begin(), members.end(), [&](const Member& other) {
      return other.host != member.host;
    });
    return precondition_error(
        concat(member_text(member), " says that its host has ", member.local_size, " ranks, but ",
               ranks.size(), " came from there: ", ranks_text(ranks),
               elsewhere == members.end() ? "" : "; on another host: ",
               elsewhere == members.end() ? "" : member_text(*elsewhere), kLocalHint));
  }
  if (by_local_rank.begin()->first != 0 ||
      by_local_rank.rbegin()->first != static_cast<int32_t>(ranks.size()) - 1) {
    const Member& last = members[static_cast<size_t>(by_local_rank.rbegin()->second)];
    return precondition_error(concat(member_text(last), " has local rank ", last.local_rank,
                                     ", expected 0 to ", ranks.size() - 1, " among ",
                                     ranks_text(ranks), " of that host", kLocalHint));
  }
  return Status::ok();
}

}  // namespace

std::string member_text(const Member& member) {
  return concat("rank ", member.rank, " (host ", member.hostname, ")");
}

std::string encode_member(const Member& member) {
  std::string out;
  put_text(out, member.version);
  put(out, member.rank);
  put(out, member.size);
  put(out, member.local_rank);
  put(out, member.local_size);
  put_text(out, member.host);
  put_text(out, member.hostname);
  put(out, static_cast<uint8_t>(member.protection));
  put(out, uint8_t{member.has_tls});
  put_text(out, net::to_text(member.addresses));
  put(out, uint8_t{member.gloo.is_wanted});
  put_text(out, member.gloo.problem);
  put_text(out, member.fresh);
  return out;
}

Result<Member> decode_member(std::string_view bytes) {
  net::Unpacker in(bytes);
  Member member;
  member.version = in.get_text();
  member.rank = in.get<int32_t>();
  member.size = in.get<int32_t>();
  member.local_rank = in.get<int32_t>();
  member.local_size = in.get<int32_t>();
  member.host = in.get_text();
  member.hostname = in.get_text();
  const auto protection = in.get<uint8_t>();
  const auto tls = in.get<uint8_t>();
  member.protection = static_cast<net::Protection>(protection);
  member.has_tls = tls == 1;
  const std::string_view addresses = in.get_text();
  const auto wants_gloo = in.get<uint8_t>();
  member.gloo = {wants_gloo == 1, std::string(in.get_text())};
  member.fresh = in.get_text();
  const bool is_protection = protection <= static_cast<uint8_t>(net::Protection::kAll);
  if (!in.is_complete() || !is_protection || tls > 1 || wants_gloo > 1) {
    return corrupted(concat("what a rank says about itself makes no sense (", bytes.size(),
                            " bytes); do all ranks have the same horovod?"));
  }
  // None where MPI carries the bytes.
  if (!addresses.empty()) {
    HVD_TRY_ASSIGN(member.addresses, net::parse_addresses(addresses));
  }
  return member;
}

std::string encode_roster(const Roster& roster) {
  std::string out;
  put(out, static_cast<int32_t>(roster.failure.code()));
  put_text(out, roster.failure.message());
  put_text(out, roster.salt);
  put(out, static_cast<uint32_t>(roster.members.size()));
  for (const Member& member : roster.members) put_text(out, encode_member(member));
  return out;
}

Result<Roster> decode_roster(std::string_view bytes) {
  net::Unpacker in(bytes);
  Roster roster;
  const auto code = in.get<int32_t>();
  const std::string message(in.get_text());
  roster.salt = in.get_text();
  const auto count = in.get<uint32_t>();
  const bool is_code = code >= 0 && code <= static_cast<int32_t>(StatusCode::kCorrupted);
  if (!in.is_good() || !is_code || count > kMostRanks) {
    return corrupted(concat("the roster makes no sense (", bytes.size(), " bytes)"));
  }
  if (code != 0) roster.failure = Status(static_cast<StatusCode>(code), message);
  for (uint32_t i = 0; i < count && in.is_good(); ++i) {
    HVD_TRY_ASSIGN(Member member, decode_member(in.get_text()));
    if (member.rank != static_cast<int32_t>(i)) {
      return corrupted(concat("the roster has rank ", member.rank, " at place ", i));
    }
    roster.members.push_back(std::move(member));
  }
  if (!in.is_complete()) {
    return corrupted(concat("the roster makes no sense (", bytes.size(), " bytes)"));
  }
  return roster;
}

Status check_member(const Member& rank0, const Member& member) {
  const auto differ = [&](const auto& what, const auto& theirs, const auto& ours) {
    return precondition_error(concat(member_text(member), " ", what, " ", theirs, ", ",
                                     member_text(rank0), " ", what, " ", ours));
  };
  if (member.version != rank0.version) return differ("has horovod", member.version, rank0.version);
  if (member.size != rank0.size) return differ("says the size is", member.size, rank0.size);
  if (member.protection != rank0.protection) {
    return differ("has HOROVOD_TLS", setting_text(member.protection),
                  setting_text(rank0.protection));
  }
  return Status::ok();
}

Result<gloo::Decision> decide_on_gloo(std::span<const Member> members) {
  std::vector<gloo::RankOffer> offers;
  for (const Member& member : members) offers.push_back({member_text(member), member.gloo});
  return gloo::decide(offers, members.front().protection == net::Protection::kAll);
}

Result<topology::HostMap> make_host_map(std::span<const Member> members) {
  topology::HostMap map;
  std::map<std::string_view, int32_t> numbers;
  for (const Member& member : members) {
    const auto [at, fresh] = numbers.emplace(member.host, map.host_count());
    if (fresh) {
      map.ranks_of.emplace_back();
      map.names.push_back(member.hostname);
    }
    map.host_of.push_back(at->second);
    map.ranks_of[static_cast<size_t>(at->second)].push_back(member.rank);
  }
  for (const auto& ranks : map.ranks_of) HVD_TRY(check_host(members, ranks));
  return map;
}

}  // namespace hvd::bootstrap
