#include "bootstrap/roster.h"
#include "bootstrap/tcp_end.h"

#include <gmock/gmock.h>

namespace hvd::bootstrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Member member(int32_t rank, int32_t size, int32_t local_rank, int32_t local_size,
              const char* host) {
  return {.version = "1.0",
          .rank = rank,
          .size = size,
          .local_rank = local_rank,
          .local_size = local_size,
          .host = std::string("identity of ") + host,
          .hostname = host,
          .addresses = *net::parse_addresses("10.0.0.1:4100,[fd00::2]:4100"),
          .gloo = {true, "is not installed"},
          .fresh = "random"};
}

TEST(Roster, SurvivesTheWayThroughBytes) {
  const Roster roster{.salt = std::string("\0salt", 5),
                      .members = {member(0, 2, 0, 1, "a"), member(1, 2, 0, 1, "b")}};

  const auto read = decode_roster(encode_roster(roster));

  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ(read->members, roster.members);
  EXPECT_EQ(read->salt, roster.salt);
  EXPECT_TRUE(read->failure);
}

TEST(Roster, CarriesAFailure) {
  const Roster roster{.failure = precondition_error("rank 1 is wrong")};

  EXPECT_EQ(decode_roster(encode_roster(roster))->failure, roster.failure);
}

TEST(Roster, RefusesBytesThatAreCutOrChanged) {
  const std::string bytes = encode_roster({.salt = "salt", .members = {member(0, 1, 0, 1, "a")}});
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_FALSE(decode_roster(std::string_view(bytes).substr(0, cut))) << cut;
  }
  EXPECT_FALSE(decode_roster(bytes + "x"));
  EXPECT_FALSE(decode_roster(std::string(64, '\xff')));
  // Whatever a byte becomes, the answer is a value or an error, never a crash.
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const char change : {'\x01', '\x80', '\xff'}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ change);
      (void)decode_roster(changed).is_ok();
    }
  }
}

TEST(HostMap, NumbersHostsByTheirLowestRank) {
  const auto map = make_host_map(std::vector{member(0, 5, 0, 2, "b"), member(1, 5, 0, 3, "a"),
                                             member(2, 5, 1, 3, "a"), member(3, 5, 1, 2, "b"),
                                             member(4, 5, 2, 3, "a")});

  ASSERT_TRUE(map) << map.status().message();
  EXPECT_THAT(map->host_of, ElementsAre(0, 1, 1, 0, 1));
  EXPECT_THAT(map->ranks_of, ElementsAre(ElementsAre(0, 3), ElementsAre(1, 2, 4)));
  EXPECT_THAT(map->names, ElementsAre("b", "a"));
}

TEST(HostMap, NamesTwoRanksWithTheSameLocalRank) {
  const auto map = make_host_map(std::vector{member(0, 2, 0, 2, "a"), member(1, 2, 0, 2, "a")});

  EXPECT_THAT(map.status().message(),
              HasSubstr("rank 0 (host a) and rank 1 (host a) run on the same host, and both have "
                        "local rank 0"));
}

TEST(HostMap, NamesAHostWithOtherRanksThanItsRanksThink) {
  const auto map = make_host_map(std::vector{member(0, 2, 0, 2, "a"), member(1, 2, 1, 2, "b")});

  EXPECT_THAT(map.status().message(),
              HasSubstr("rank 0 (host a) says that its host has 2 ranks, but 1 came from there: "
                        "rank 0; on another host: rank 1 (host b)"));
  EXPECT_THAT(map.status().message(), HasSubstr("HOROVOD_LOCAL_SIZE"));
}

TEST(HostMap, NamesALocalRankOutsideItsHost) {
  const auto map = make_host_map(std::vector{member(0, 2, 0, 2, "a"), member(1, 2, 5, 2, "a")});

  EXPECT_THAT(map.status().message(),
              HasSubstr("rank 1 (host a) has local rank 5, expected 0 to 1"));
}

TEST(Roster, NamesRanksThatDiffer) {
  const Member zero = member(0, 4, 0, 2, "a");
  Member size = member(1, 8, 0, 2, "b"), version = member(2, 4, 0, 2, "b"),
         tls = member(3, 4, 0, 2, "b");
  version.version = "2.0";
  tls.protection = net::Protection::kAll;

  EXPECT_TRUE(check_member(zero, member(1, 4, 0, 2, "b")));
  EXPECT_THAT(check_member(zero, size).message(),
              HasSubstr("rank 1 (host b) says the size is 8, rank 0 (host a) says the size is 4"));
  EXPECT_THAT(check_member(zero, version).message(),
              HasSubstr("rank 2 (host b) has horovod 2.0, rank 0 (host a) has horovod 1.0"));
  EXPECT_THAT(
      check_member(zero, tls).message(),
      HasSubstr("rank 3 (host b) has HOROVOD_TLS 1, rank 0 (host a) has HOROVOD_TLS unset"));
}

TEST(RosterGloo, ALibraryWithOneAddressListensWhereTheOtherHostsAre) {
  const auto address = [](const char* text) { return *net::parse_host(text, 0); };
  TcpEnd end;
  end.member.host = "here";
  end.interfaces = {{.name = "docker0", .address = address("172.17.0.1"), .prefix_length = 16},
                    {.name = "eth0", .address = address("10.1.0.5"), .prefix_length = 24}};
  end.usable = {address("172.17.0.1"), address("10.1.0.5")};
  Roster roster;
  Member other;
  other.host = "there";
  other.addresses = {address("192.168.3.3"), address("10.1.0.9")};
  roster.members = {end.member, other};

  EXPECT_EQ(address_for_others(end, roster), "10.1.0.5");
  roster.members[1].addresses = {address("192.168.3.3")};
  EXPECT_EQ(address_for_others(end, roster), "172.17.0.1") << "else the first";
}

}  // namespace
}  // namespace hvd::bootstrap
