#include "net/acceptor.h"

#include <gmock/gmock.h>

#include <random>

#include "net/dialler.h"
#include "tests/unit/net/sockets.h"

namespace hvd::net {
namespace {

using test::connect_plainly;
using test::is_closed_without_a_word;
using test::key_of;
using test::loopback;
using test::wait_until;
using test::welcome;
using ::testing::HasSubstr;

std::unique_ptr<Acceptor> make_acceptor(const AcceptorOptions& options = {}) {
  const Address where = loopback();
  auto acceptor = Acceptor::create(*Listener::listen({&where, 1}), key_of(1),
                                   {.epoch = 3, .rank = 1}, welcome, options);
  EXPECT_TRUE(acceptor);
  return std::move(*acceptor);
}

std::unique_ptr<Dialler> make_dialler(const Acceptor& acceptor, const Key& key = key_of(1)) {
  return std::move(*Dialler::start("rank 1 (host b)", acceptor.addresses(), key,
                                   {.epoch = 3, .rank = 0, .peer = 1, .purpose = 5},
                                   Deadline::after(test::kPatience)));
}

// Does a member of the job get through?
void expect_open_for_members(Acceptor& acceptor) {
  const auto dialler = make_dialler(acceptor);
  std::vector<Accepted> accepted;
  std::unique_ptr<Dialler::Connected> connected;
  EXPECT_TRUE(wait_until({acceptor.descriptor(), dialler->descriptor()}, [&] {
    for (Accepted& one : acceptor.poll()) accepted.push_back(std::move(one));
    if (connected == nullptr) connected = std::move(*dialler->poll());
    return connected != nullptr && !accepted.empty();
  }));
  ASSERT_EQ(accepted.size(), 1u);
  EXPECT_EQ(accepted[0].hello.purpose, 5u);
  EXPECT_EQ(accepted[0].hello.rank, 0);
}

TEST(Listener, NeverListensOnAWildcardAddress) {
  const Address any = *parse_host("0.0.0.0", 0), any6 = *parse_host("::", 0);

  EXPECT_THAT(Listener::listen({&any, 1}).status().message(), HasSubstr("wildcard"));
  EXPECT_THAT(Listener::listen({&any6, 1}).status().message(), HasSubstr("wildcard"));
}

TEST(Listener, LeavesOutAddressesThatAreNotItsOwn) {
  const std::vector<Address> addresses = {*parse_host("203.0.113.1", 0), loopback()};

  const auto listener = Listener::listen(addresses);

  ASSERT_TRUE(listener);
  ASSERT_EQ(listener->addresses().size(), 1u);
  EXPECT_TRUE(listener->addresses()[0].is_loopback());
  EXPECT_NE(listener->addresses()[0].port, 0);
}

TEST(Listener, SaysWhyNoAddressWorked) {
  const Address foreign = *parse_host("203.0.113.1", 0);

  const auto listener = Listener::listen({&foreign, 1});

  ASSERT_FALSE(listener);
  EXPECT_THAT(listener.status().message(), HasSubstr("203.0.113.1:0: bind"));
}

TEST(Acceptor, LetsMembersIn) {
  const auto acceptor = make_acceptor();

  expect_open_for_members(*acceptor);

  EXPECT_EQ(acceptor->half_open(), 0u);
  EXPECT_EQ(acceptor->refused(), 0u);
}

TEST(Acceptor, ClosesOnGarbageWithoutAWord) {
  const auto acceptor = make_acceptor();
  std::mt19937 random(42);
  for (int round = 0; round < 20; ++round) {
    const UniqueFd stranger = connect_plainly(acceptor->addresses()[0]);
    std::string garbage(kOpeningBytes, '\0');
    for (char& c : garbage) c = static_cast<char>(random());
    ASSERT_EQ(send(stranger.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(garbage.size()));
    const uint64_t before = acceptor->refused();

    ASSERT_TRUE(wait_until({acceptor->descriptor()}, [&] {
      EXPECT_TRUE(acceptor->poll().empty());
      return acceptor->refused() > before;
    }));

    EXPECT_TRUE(is_closed_without_a_word(stranger));
  }
  expect_open_for_members(*acceptor);
}

TEST(Acceptor, EndsASlowHandshakeAtItsDeadline) {
  const auto acceptor = make_acceptor({.handshake_time = std::chrono::milliseconds(50)});
  const UniqueFd slow = connect_plainly(acceptor->addresses()[0]);
  ASSERT_EQ(send(slow.get(), "x", 1, 0), 1);

  ASSERT_TRUE(wait_until({acceptor->descriptor()}, [&] {
    EXPECT_TRUE(acceptor->poll().empty());
    return acceptor->refused() == 1;
  }));

  EXPECT_TRUE(is_closed_without_a_word(slow));
  expect_open_for_members(*acceptor);
}

TEST(Acceptor, SurvivesAPortScanner) {
  const auto acceptor = make_acceptor();
  for (int i = 0; i < 300; ++i) connect_plainly(acceptor->addresses()[0]);

  expect_open_for_members(*acceptor);
}

TEST(Acceptor, DropsTheOldestOfTooManyStrangers) {
  const auto acceptor = make_acceptor({.half_open_count = 4});
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 10; ++i) {
    strangers.push_back(connect_plainly(acceptor->addresses()[0]));
    const size_t expected = std::min<size_t>(strangers.size(), 4);
    ASSERT_TRUE(wait_until({acceptor->descriptor()}, [&] {
      acceptor->poll();
      return acceptor->half_open() == expected &&
             acceptor->refused() == strangers.size() - expected;
    }));
  }

  for (size_t i = 0; i < 6; ++i) EXPECT_TRUE(is_closed_without_a_word(strangers[i])) << i;
  for (size_t i = 6; i < 10; ++i) {
    char byte;
    EXPECT_EQ(recv(strangers[i].get(), &byte, 1, MSG_DONTWAIT), -1) << i;
  }
  expect_open_for_members(*acceptor);
}

TEST(Acceptor, TurnsAwayAnotherJob) {
  const auto acceptor = make_acceptor();
  const auto dialler = make_dialler(*acceptor, key_of(2));

  ASSERT_TRUE(wait_until({acceptor->descriptor(), dialler->descriptor()}, [&] {
    EXPECT_TRUE(acceptor->poll().empty());
    const auto connected = dialler->poll();
    EXPECT_TRUE(connected.is_ok() && *connected == nullptr);
    return acceptor->refused() >= 3;
  }));
}

}  // namespace
}  // namespace hvd::net
