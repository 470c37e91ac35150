#include "net/address.h"

#include <gmock/gmock.h>

#include "net/interfaces.h"

namespace hvd::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Address, ReadsWhatItPrints) {
  for (const char* text : {"10.0.0.1:4100", "[fd00::2]:4100", "127.0.0.1:1", "[::1]:65535"}) {
    const auto address = parse_address(text);

    ASSERT_TRUE(address) << address.status().message();
    EXPECT_EQ(to_text(*address), text);
  }
  EXPECT_EQ(to_text(*parse_address("[fe80::1%lo]:7")), "[fe80::1%1]:7");
}

TEST(Address, KeepsTheOrderOfAList) {
  const auto list = parse_addresses("10.0.0.1:4100, [fd00::2]:4100");

  ASSERT_TRUE(list);
  EXPECT_EQ(to_text(*list), "10.0.0.1:4100,[fd00::2]:4100");
}

TEST(Address, TurnsIpv4InsideIpv6IntoIpv4) {
  EXPECT_EQ(to_text(*parse_host("::ffff:10.0.0.1", 5)), "10.0.0.1:5");
}

TEST(Address, RefusesWhatIsNoAddress) {
  for (const char* text :
       {"", "10.0.0.1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536", "host:80", "fd00::2:4100",
        "[fd00::2]", "[10.0.0.1]:5", "10.0.0.1:4100,", "[fe80::1%no-such-nic]:7", "1.2.3:4"}) {
    const auto list = parse_addresses(text);

    ASSERT_FALSE(list) << text;
    EXPECT_EQ(list.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(list.status().message(), HasSubstr("'")) << text;
  }
}

TEST(Address, SurvivesTheWayThroughASocketAddress) {
  for (const char* text : {"10.0.0.1:4100", "[fd00::2]:4100", "[fe80::1%1]:9"}) {
    const Address address = *parse_address(text);

    EXPECT_EQ(*from_socket_address(to_socket_address(address).get()), address);
  }
}

TEST(Address, KnowsItsKind) {
  EXPECT_TRUE(parse_host("127.1.2.3", 0)->is_loopback());
  EXPECT_TRUE(parse_host("::1", 0)->is_loopback());
  EXPECT_FALSE(parse_host("fd00::1", 0)->is_loopback());
  EXPECT_TRUE(parse_host("0.0.0.0", 5)->is_wildcard());
  EXPECT_TRUE(parse_host("::", 5)->is_wildcard());
  EXPECT_TRUE(parse_host("fe80::1", 0)->is_link_local());
}

TEST(Address, ComparesPrefixesBitByBit) {
  const Address a = *parse_host("10.0.16.1", 0), b = *parse_host("10.0.31.2", 0);

  EXPECT_TRUE(shares_prefix(a, b, 20));
  EXPECT_FALSE(shares_prefix(a, b, 21));
  EXPECT_FALSE(shares_prefix(a, *parse_host("fd00::1", 0), 0));
}

Interface interface_of(const char* name, uint32_t index, const char* address, int prefix,
                       bool loopback = false) {
  return {.name = name,
          .index = index,
          .address = *parse_host(address, 0),
          .prefix_length = prefix,
          .is_loopback = loopback};
}

const std::vector<Interface> kOwn = {
    interface_of("lo", 1, "127.0.0.1", 8, true), interface_of("eth0", 2, "fe80::2", 64),
    interface_of("eth0", 2, "10.0.0.1", 24),     interface_of("docker0", 3, "172.17.0.1", 16),
    interface_of("eth1", 4, "fd00::1", 64),
};

std::vector<std::string> texts_of(std::span<const Address> addresses) {
  std::vector<std::string> texts;
  for (const Address& address : addresses) texts.push_back(to_text(address));
  return texts;
}

TEST(Interfaces, LeavesOutLoopbackAndPutsLinkLocalLast) {
  EXPECT_THAT(texts_of(*usable_addresses(kOwn, {})),
              ElementsAre("10.0.0.1:0", "172.17.0.1:0", "[fd00::1]:0", "[fe80::2]:0"));
}

TEST(Interfaces, TakesLoopbackWhenThereIsNothingElseOrItIsAskedFor) {
  const std::vector<std::string> names = {"lo"};

  EXPECT_THAT(texts_of(*usable_addresses(std::span(kOwn).first(1), {})),
              ElementsAre("127.0.0.1:0"));
  EXPECT_THAT(texts_of(*usable_addresses(kOwn, names)), ElementsAre("127.0.0.1:0"));
}

TEST(Interfaces, TakesOnlyTheNamedOnes) {
  const auto names = parse_interface_names("eth1, eth0");

  EXPECT_THAT(texts_of(*usable_addresses(kOwn, names)),
              ElementsAre("[fd00::1]:0", "10.0.0.1:0", "[fe80::2]:0"));
}

TEST(Interfaces, NamesWhatThereIsWhenAnInterfaceIsMissing) {
  const auto names = parse_interface_names("ib0");

  const auto addresses = usable_addresses(kOwn, names);

  ASSERT_FALSE(addresses);
  EXPECT_THAT(addresses.status().message(), HasSubstr("'ib0'"));
  EXPECT_THAT(addresses.status().message(), HasSubstr("lo, eth0, docker0, eth1"));
}

TEST(Interfaces, DialsTheSameSubnetFirstAndItsOwnAddressesLast) {
  const auto peer =
      *parse_addresses("172.17.0.1:5,[fe80::9]:5,192.168.1.2:5,[fd00::2]:5,10.0.0.2:5");

  EXPECT_THAT(
      texts_of(dial_order(peer, kOwn)),
      ElementsAre("[fd00::2]:5", "10.0.0.2:5", "192.168.1.2:5", "[fe80::9%2]:5", "172.17.0.1:5"));
}

TEST(Interfaces, OfThisHostIncludeLoopback) {
  const auto all = all_interfaces();

  ASSERT_TRUE(all);
  EXPECT_TRUE(
      std::any_of(all->begin(), all->end(), [](const Interface& one) { return one.is_loopback; }));
}

}  // namespace
}  // namespace hvd::net
