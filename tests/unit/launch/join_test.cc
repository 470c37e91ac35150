// Hosts that join by themselves: what is said, where they meet, and the bytes in between.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "launch/link/join_message.h"
#include "launch/link/meeting_place.h"
#include "launch/link/stream_pump.h"
#include "launch/os/descriptor_limit.h"
#include "launch/os/now.h"
#include "net/interfaces.h"
#include "net/sealed_stream.h"

namespace hvd::launch {
namespace {

using ::testing::HasSubstr;

TEST(LaunchJoin, MessagesSurviveTheJourneyAndDamageIsNoticed) {
  const std::string join = encode(JoinMessage{.version = "1.2", .hostname = "hostb", .slots = 4});
  const auto joined = decode_join(join);
  ASSERT_TRUE(joined.is_ok());
  EXPECT_EQ(joined->hostname, "hostb");
  EXPECT_EQ(joined->slots, 4);
  const std::string end = encode(EndMessage{.exit_code = 137, .text = "why"});
  const auto ended = decode_end(end);
  ASSERT_TRUE(ended.is_ok());
  EXPECT_EQ(ended->exit_code, 137);
  EXPECT_EQ(ended->text, "why");

  for (size_t length = 0; length < join.size(); ++length) {
    EXPECT_FALSE(decode_join(std::string_view(join).substr(0, length)).is_ok());
  }
  EXPECT_FALSE(decode_join(join + "x").is_ok());
  EXPECT_FALSE(decode_end(end.substr(1)).is_ok());
}

TEST(LaunchJoin, AMeetingPlaceIsAHostAndAPort) {
  for (const char* text : {"gpu1:4711", "10.0.0.1:4711", "[fd00::1]:4711"}) {
    const auto place = parse_meeting_place(text);
    ASSERT_TRUE(place.is_ok()) << place.status().message();
    EXPECT_EQ(place->port, 4711);
  }
  EXPECT_EQ(parse_meeting_place("[fd00::1]:4711")->host, "fd00::1");
  for (const char* text : {"gpu1", "gpu1:", "gpu1:0", "gpu1:65536", ":4711", "fd00::1:4711",
                           "-o:4711", "a b:4711", "gpu1:x"}) {
    const auto place = parse_meeting_place(text);
    ASSERT_FALSE(place.is_ok()) << text;
    EXPECT_THAT(place.status().message(), HasSubstr("expected HOST:PORT"));
  }
}

net::Address address(const char* text, uint16_t port = 0) { return *net::parse_host(text, port); }

TEST(LaunchJoin, ThePlaceIsThisHostIfItsFirstAddressIs) {
  const auto interfaces = net::all_interfaces();
  ASSERT_TRUE(interfaces.is_ok());
  for (const net::Interface& one : *interfaces) EXPECT_TRUE(is_this_host({one.address}));
  EXPECT_TRUE(is_this_host({address("127.0.1.1", 4711), address("203.0.113.1", 4711)}));
  EXPECT_FALSE(is_this_host({address("203.0.113.1", 4711), address("127.0.0.1", 4711)}));
  EXPECT_FALSE(is_this_host({}));
}

TEST(LaunchJoin, AnAddressThatTheMachineLacksIsLeftOutAndAPortThatIsTakenIsNot) {
  const auto first = listen_on_usable({address("203.0.113.1"), address("127.0.0.1")});
  ASSERT_TRUE(first.is_ok()) << first.status().message();
  ASSERT_EQ(first->addresses().size(), 1u);
  const uint16_t port = first->addresses().front().port;

  const auto second = listen_on_usable({address("127.0.0.2", port), address("127.0.0.1", port)});

  ASSERT_FALSE(second.is_ok());
  EXPECT_THAT(second.status().message(),
              HasSubstr("cannot listen on 127.0.0.1:" + std::to_string(port) +
                        ": bind: Address already in use"));
}

TEST(LaunchJoin, RoomForHostsThatMayComeEndsAtTheHardLimit) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  if (before.rlim_max < 300) GTEST_SKIP() << "the hard limit is " << before.rlim_max;
  const rlimit low{.rlim_cur = 128, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  const auto limit_after = [&low](int32_t workers, int32_t later) {
    const auto made = DescriptorLimit::make_room(workers, later);
    rlimit now{};
    ::getrlimit(RLIMIT_NOFILE, &now);
    ::setrlimit(RLIMIT_NOFILE, &low);
    return made.is_ok() ? now.rlim_cur : 0;
  };

  EXPECT_EQ(limit_after(4, 0), 128u);
  EXPECT_EQ(limit_after(4, 40), 284u);
  if (before.rlim_max < 1 << 30) {
    EXPECT_EQ(limit_after(4, 1 << 28), before.rlim_max);
    EXPECT_EQ(limit_after(1 << 28, 0), 0u);
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
}

// Two pumps with an encrypted stream between them, as at both ends of an agent's connection.
class LaunchStreamPump : public ::testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);  // as in the launcher
    std::array<int, 2> wire{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, wire.data()), 0);
    const auto key = net::Key::random();
    auto near = make_local_pair(), far = make_local_pair();
    ASSERT_TRUE(key.is_ok() && near.is_ok() && far.is_ok());
    near_ = std::move(near->theirs);
    far_ = std::move(far->theirs);
    dialler_.emplace(
        net::make_sealed_stream(UniqueFd(wire[0]), "far", *key, net::SealRole::kDialler),
        std::move(near->ours));
    acceptor_.emplace(
        net::make_sealed_stream(UniqueFd(wire[1]), "near", *key, net::SealRole::kAcceptor),
        std::move(far->ours));
  }
  void turn() {
    PollSet polls;
    dialler_->watch(polls);
    acceptor_->watch(polls);
    polls.wake_by(now() + std::chrono::milliseconds(1));
    polls.wait();
    for (StreamPump* pump : {&*dialler_, &*acceptor_}) {
      if (pump->has_stream_ended()) pump->end_local();
    }
  }

  UniqueFd near_, far_;
  std::optional<StreamPump> dialler_, acceptor_;
};

TEST_F(LaunchStreamPump, EveryByteArrivesInOrderBeforeTheEnd) {
  std::string sent(3 << 20, '\0'), got;
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 2654435761U >> 13);
  size_t done = 0;
  bool has_ended = false;
  const TimePoint give_up_at = now() + std::chrono::seconds(60);
  while (!has_ended && now() < give_up_at) {
    if (near_.valid()) {
      const ssize_t count = ::write(near_.get(), sent.data() + done, sent.size() - done);
      if (count > 0) done += static_cast<size_t>(count);
      if (done == sent.size()) near_.reset();
    }
    turn();
    std::array<char, 65536> buffer;
    ssize_t count = 0;
    while ((count = ::read(far_.get(), buffer.data(), buffer.size())) > 0) {
      got.append(buffer.data(), static_cast<size_t>(count));
    }
    has_ended = count == 0;
  }
  EXPECT_TRUE(has_ended);
  EXPECT_TRUE(got == sent) << got.size() << " of " << sent.size() << " bytes";
  EXPECT_TRUE(dialler_->is_over());
  EXPECT_FALSE(acceptor_->is_over()) << "whoever reads there has not closed its end";
  far_.reset();
  while (!acceptor_->is_over() && now() < give_up_at) turn();
  EXPECT_TRUE(acceptor_->is_over());
}

// An agent writes its last frames and exits while the launcher still speaks to it.
TEST_F(LaunchStreamPump, WhatWasWrittenBeforeTheEndArrivesThoughNobodyListensThere) {
  const std::string sent(150 << 10, 'x');
  ASSERT_EQ(::write(near_.get(), sent.data(), sent.size()), static_cast<ssize_t>(sent.size()));
  near_.reset();
  std::string got;
  bool has_ended = false;
  const TimePoint give_up_at = now() + std::chrono::seconds(60);
  while (!has_ended && now() < give_up_at) {
    (void)!::send(far_.get(), "beat", 4, MSG_NOSIGNAL);
    turn();
    std::array<char, 4096> buffer;
    const ssize_t count = ::read(far_.get(), buffer.data(), buffer.size());
    if (count > 0) got.append(buffer.data(), static_cast<size_t>(count));
    has_ended = count == 0;
  }
  EXPECT_TRUE(has_ended);
  EXPECT_EQ(got.size(), sent.size());
}

}  // namespace
}  // namespace hvd::launch
