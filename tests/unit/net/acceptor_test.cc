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
using Bytes = std::vector<uint8_t>;

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

// Message 1 as a dialler of the job sent it once, in an array of bytes.
Bytes recorded_opening() {
  auto [ours, theirs] = test::socket_pair();
  auto handshake = Handshake::dial(key_of(1), {.epoch = 3, .rank = 0, .peer = 1, .purpose = 5});
  handshake->advance(ours.get());
  Bytes opening(kOpeningBytes);
  EXPECT_EQ(recv(theirs.get(), opening.data(), opening.size(), MSG_WAITALL),
            static_cast<ssize_t>(opening.size()));
  return opening;
}

void send_bytes(const UniqueFd& socket, const Bytes& bytes) {
  ASSERT_EQ(send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

TEST(Acceptor, GivesARecordedOpeningNoByteAndNoLineInTheLog) {
  const auto acceptor = make_acceptor();
  const Bytes opening = recorded_opening();
  const UniqueFd original = connect_plainly(acceptor->addresses()[0]);
  send_bytes(original, opening);
  std::array<char, kOpeningBytes> answer;
  ASSERT_TRUE(wait_until({acceptor->descriptor(), original.get()}, [&] {
    acceptor->poll();
    return recv(original.get(), answer.data(), answer.size(), MSG_PEEK | MSG_DONTWAIT) ==
           static_cast<ssize_t>(answer.size());
  }));

  ::testing::internal::CaptureStderr();
  for (uint64_t i = 0; i < 5; ++i) {
    const uint64_t before = acceptor->refused();
    const UniqueFd repeated = connect_plainly(acceptor->addresses()[0]);
    send_bytes(repeated, opening);
    ASSERT_TRUE(wait_until({acceptor->descriptor()}, [&] {
      acceptor->poll();
      return acceptor->refused() > before;
    }));
    EXPECT_TRUE(is_closed_without_a_word(repeated));
  }

  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  expect_open_for_members(*acceptor);
}

// Whoever has recordings of many openings holds the table, but is not preferred to a newcomer.
TEST(Acceptor, PrefersNobodyBeforeTheLastMessage) {
  const auto acceptor = make_acceptor({.half_open_count = 4});
  std::vector<UniqueFd> impostors;
  for (int i = 0; i < 4; ++i) {
    impostors.push_back(connect_plainly(acceptor->addresses()[0]));
    send_bytes(impostors.back(), recorded_opening());
    ASSERT_TRUE(wait_until({acceptor->descriptor(), impostors.back().get()}, [&] {
      acceptor->poll();
      char byte;
      return recv(impostors.back().get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
    }));
  }
  const UniqueFd newcomer = connect_plainly(acceptor->addresses()[0]);
  const UniqueFd another = connect_plainly(acceptor->addresses()[0]);

  ASSERT_TRUE(wait_until({acceptor->descriptor()}, [&] {
    acceptor->poll();
    return acceptor->half_open() == 4;
  }));

  char byte;
  EXPECT_EQ(recv(newcomer.get(), &byte, 1, MSG_DONTWAIT), -1) << "it is still there";
  EXPECT_EQ(recv(another.get(), &byte, 1, MSG_DONTWAIT), -1);
  expect_open_for_members(*acceptor);
}

// Loopback has many addresses, and a socket may come from any of them.
UniqueFd connect_from(const char* source, const Address& address) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress from = to_socket_address(*parse_host(source, 0));
  const SocketAddress to = to_socket_address(address);
  EXPECT_EQ(::bind(fd.get(), from.get(), from.length), 0);
  EXPECT_EQ(::connect(fd.get(), to.get(), to.length), 0);
  return fd;
}

TEST(Acceptor, OneAddressCannotCrowdOutAnother) {
  const auto acceptor = make_acceptor({.half_open_count = 8});
  const UniqueFd honest = connect_from("127.0.0.2", acceptor->addresses()[0]);
  ASSERT_TRUE(wait_until({acceptor->descriptor()}, [&] {
    acceptor->poll();
    return acceptor->half_open() == 1;
  }));

  std::vector<UniqueFd> crowd;
  for (uint64_t i = 0; i < 50; ++i) {
    crowd.push_back(connect_from("127.0.0.3", acceptor->addresses()[0]));
    const uint64_t gone = i < 7 ? 0 : i - 6;
    ASSERT_TRUE(wait_until({acceptor->descriptor()}, [&] {
      acceptor->poll();
      return acceptor->refused() == gone;
    }));
  }

  char byte;
  EXPECT_EQ(recv(honest.get(), &byte, 1, MSG_DONTWAIT), -1) << "the oldest of all is still there";
  ASSERT_EQ(acceptor->visitors().sources().size(), 1u);
  EXPECT_EQ(host_text(acceptor->visitors().sources()[0].from), "127.0.0.3");
  EXPECT_EQ(acceptor->visitors().sources()[0].count, acceptor->refused());
}

TEST(Acceptor, RemembersWhoCameFromWhere) {
  const auto acceptor = make_acceptor();

  expect_open_for_members(*acceptor);

  ASSERT_EQ(acceptor->visitors().admitted().size(), 1u);
  EXPECT_THAT(acceptor->visitors().admitted().at(0), ::testing::ElementsAre("127.0.0.1"));
}

TEST(Visitors, SayOnceAMinuteHowManyMoreWereRefused) {
  Visitors visitors;
  const TimePoint start = TimePoint() + std::chrono::hours(1);
  const Address crowd = *parse_host("10.0.0.9", 7), other = *parse_host("fd00::2", 7);
  for (uint64_t i = 0; i < Visitors::kMostLines; ++i) visitors.note_refused(other);
  EXPECT_TRUE(visitors.is_worth_a_line());
  EXPECT_EQ(visitors.summary(start), "");

  for (int i = 0; i < 100; ++i) visitors.note_refused(crowd);
  EXPECT_FALSE(visitors.is_worth_a_line());
  EXPECT_THAT(visitors.summary(start), HasSubstr("refused 100 more connections (108 in all, 100 of "
                                                 "them from 10.0.0.9)"));
  visitors.note_refused(crowd);
  EXPECT_EQ(visitors.summary(start + std::chrono::seconds(59)), "");
  EXPECT_THAT(visitors.summary(start + std::chrono::seconds(60)),
              HasSubstr("refused 1 more connections (109 in all"));
  EXPECT_EQ(visitors.summary_due(), TimePoint::max());
}

TEST(Visitors, TakeBoundedMemory) {
  Visitors visitors;
  for (uint16_t i = 0; i < 1000; ++i) {
    Address from = *parse_host("10.0.0.1", 1);
    from.bytes[2] = static_cast<uint8_t>(i >> 8);
    from.bytes[3] = static_cast<uint8_t>(i);
    visitors.note_refused(from);
  }

  EXPECT_EQ(visitors.refused(), 1000u);
  EXPECT_EQ(visitors.sources().size(), Visitors::kMostSources);
}

TEST(RecentNonces, ForgetTheOldestAlone) {
  RecentNonces recent;
  const auto nonce = [](size_t i) {
    RecentNonces::Nonce out{};
    out[0] = static_cast<uint8_t>(i);
    out[1] = static_cast<uint8_t>(i >> 8);
    return out;
  };
  for (size_t i = 0; i < RecentNonces::kMost; ++i) EXPECT_TRUE(recent.add(nonce(i)));
  for (size_t i = 0; i < RecentNonces::kMost; ++i) EXPECT_FALSE(recent.add(nonce(i)));

  EXPECT_TRUE(recent.add(nonce(RecentNonces::kMost)));
  EXPECT_TRUE(recent.add(nonce(0)));
  EXPECT_FALSE(recent.add(nonce(5)));
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
