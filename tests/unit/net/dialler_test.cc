#include "net/dialler.h"

#include <gmock/gmock.h>

#include "net/acceptor.h"
#include "tests/unit/net/sockets.h"

namespace hvd::net {
namespace {

using test::DeadPort;
using test::key_of;
using test::loopback;
using test::loopback6;
using test::wait_until;
using ::testing::HasSubstr;

const Hello kHello{.epoch = 3, .rank = 0, .peer = 1, .purpose = 5};

std::unique_ptr<Acceptor> accept_at(
    const Address& where, Judge judge = [](const Hello&) { return Verdict::kWelcome; }) {
  return std::move(*Acceptor::create(*Listener::listen({&where, 1}), key_of(1),
                                     {.epoch = 3, .rank = 1}, std::move(judge)));
}

Result<std::unique_ptr<Dialler::Connected>> dial_with(Acceptor& acceptor, Dialler& dialler) {
  Result<std::unique_ptr<Dialler::Connected>> out(unknown_error("out of time"));
  std::vector<Accepted> accepted;
  wait_until({acceptor.descriptor(), dialler.descriptor()}, [&] {
    for (Accepted& one : acceptor.poll()) accepted.push_back(std::move(one));
    out = dialler.poll();
    return !out.is_ok() || *out != nullptr;
  });
  return out;
}

std::unique_ptr<Dialler> dialler_to(std::vector<Address> addresses, Nanoseconds time,
                                    const DialOptions& options = {}) {
  return std::move(*Dialler::start("rank 1 (host b)", std::move(addresses), key_of(1), kHello,
                                   Deadline::after(time), options));
}

TEST(Dialler, GoesOnWhenTheFirstAddressIsDead) {
  const DeadPort dead;
  const auto acceptor = accept_at(loopback());
  // The pause would be longer than the deadline: only the failure of the first brings on the
  // second.
  const auto dialler =
      dialler_to({dead.address(), acceptor->addresses()[0]}, std::chrono::seconds(10),
                 {.next_address_after = std::chrono::hours(1)});

  const auto connected = dial_with(*acceptor, *dialler);

  ASSERT_TRUE(connected) << connected.status().message();
  EXPECT_EQ((*connected)->address, acceptor->addresses()[0]);
}

// 203.0.113.0/24 is never routed: either nothing answers, or the kernel says so at once.
TEST(Dialler, GoesOnWhenTheFirstAddressIsSilent) {
  const auto acceptor = accept_at(loopback());
  const auto dialler =
      dialler_to({*parse_address("203.0.113.1:9"), acceptor->addresses()[0]}, test::kPatience);

  const auto connected = dial_with(*acceptor, *dialler);

  ASSERT_TRUE(connected) << connected.status().message();
  EXPECT_EQ((*connected)->address, acceptor->addresses()[0]);
}

TEST(Dialler, GoesOnWhenTheFirstAddressAcceptsButNeverAnswers) {
  const Address where = loopback();
  const auto silent = *Listener::listen({&where, 1});
  const auto acceptor = accept_at(loopback());
  const auto dialler =
      dialler_to({silent.addresses()[0], acceptor->addresses()[0]}, test::kPatience,
                 {.next_address_after = std::chrono::milliseconds(1),
                  .contested_handshake_time = std::chrono::milliseconds(20)});

  const auto connected = dial_with(*acceptor, *dialler);

  ASSERT_TRUE(connected) << connected.status().message();
  EXPECT_EQ((*connected)->address, acceptor->addresses()[0]);
}

TEST(Dialler, SpeaksIpv6) {
  if (!test::has_ipv6_loopback()) GTEST_SKIP() << "this host has no IPv6";
  const auto acceptor = accept_at(loopback6());
  const auto dialler = dialler_to(acceptor->addresses(), test::kPatience);

  const auto connected = dial_with(*acceptor, *dialler);

  ASSERT_TRUE(connected) << connected.status().message();
  EXPECT_EQ((*connected)->address.family, Family::kIpv6);
}

TEST(Dialler, TriesUntilAPeerThatIsLateIsThere) {
  DeadPort port;  // the address is taken, but nobody listens yet
  const auto dialler = dialler_to({port.address()}, test::kPatience);
  int polls = 0;
  ASSERT_TRUE(wait_until({dialler->descriptor()}, [&] {
    const auto connected = dialler->poll();
    EXPECT_TRUE(connected.is_ok() && *connected == nullptr);
    return ++polls >= 5;
  }));

  port.listen();

  auto peer = *Handshake::accept(key_of(1), {.epoch = 3, .rank = 1},
                                 [](const Hello&) { return Verdict::kWelcome; });
  UniqueFd guest;
  std::unique_ptr<Dialler::Connected> connected;
  ASSERT_TRUE(wait_until({dialler->descriptor(), port.descriptor()}, [&] {
    if (!guest.valid()) guest.reset(accept4(port.descriptor(), nullptr, nullptr, SOCK_NONBLOCK));
    if (guest.valid()) peer.advance(guest.get());
    connected = std::move(*dialler->poll());
    return connected != nullptr;
  }));
  EXPECT_EQ(connected->address, port.address());
}

TEST(Dialler, ListsEveryAddressAndWhyItFailed) {
  const DeadPort one, two;
  const auto dialler = dialler_to({one.address(), two.address()}, std::chrono::milliseconds(150));
  Status failure;

  ASSERT_TRUE(wait_until({dialler->descriptor()}, [&] {
    failure = dialler->poll().status();
    return !failure.is_ok();
  }));

  EXPECT_EQ(failure.code(), StatusCode::kTimedOut);
  EXPECT_THAT(failure.message(), HasSubstr("cannot reach rank 1 (host b) within "));
  EXPECT_THAT(failure.message(), HasSubstr(to_text(one.address()) + ": Connection refused ("));
  EXPECT_THAT(failure.message(), HasSubstr(to_text(two.address()) + ": Connection refused ("));
}

TEST(Dialler, GivesUpAtOnceWhenThePeerIsInAnotherEpoch) {
  const auto acceptor = accept_at(loopback(), [](const Hello&) { return Verdict::kOtherEpoch; });
  const auto dialler = dialler_to(acceptor->addresses(), test::kPatience);

  const auto connected = dial_with(*acceptor, *dialler);

  EXPECT_EQ(connected.status().code(), StatusCode::kPreconditionError);
  EXPECT_THAT(connected.status().message(), HasSubstr("rank 1 (host b) at 127.0.0.1:"));
  EXPECT_THAT(connected.status().message(), HasSubstr("is in another epoch"));
}

TEST(Dialler, GivesUpSoonWhenThePeerHasAnotherKey) {
  const auto acceptor = accept_at(loopback());
  const auto dialler =
      *Dialler::start("rank 1 (host b)", acceptor->addresses(), key_of(2), kHello,
                      Deadline::never(), {.refused_time = std::chrono::milliseconds(20)});

  const auto connected = dial_with(*acceptor, *dialler);

  EXPECT_EQ(connected.status().code(), StatusCode::kPreconditionError);
  EXPECT_THAT(connected.status().message(), HasSubstr("rank 1 (host b) at 127.0.0.1:"));
  EXPECT_THAT(connected.status().message(), HasSubstr("has another key than this process"));
}

// Strangers fill up the acceptor, so that members are dropped again and again.
TEST(Dialler, DoesNotTakeBeingDroppedForAnotherKey) {
  const Address where = loopback();
  const auto acceptor = *Acceptor::create(
      *Listener::listen({&where, 1}), key_of(1), {.epoch = 3, .rank = 1},
      [](const Hello&) { return Verdict::kWelcome; }, {.handshake_time = Nanoseconds(0)});
  // Nothing of its proof has come when it is dropped.
  UniqueFd guest = test::connect_plainly(acceptor->addresses()[0]);
  ASSERT_TRUE(wait_until({acceptor->descriptor()}, [&] {
    EXPECT_TRUE(acceptor->poll().empty());
    return acceptor->refused() == 1;
  }));
  auto handshake = *Handshake::dial(key_of(1), kHello);
  ASSERT_TRUE(wait_until(
      {guest.get()}, [&] { return handshake.advance(guest.get()) == Handshake::State::kFailed; }));

  EXPECT_FALSE(handshake.is_refused());
}

TEST(Dialler, NeedsAnAddress) {
  EXPECT_FALSE(Dialler::start("rank 1", {}, key_of(1), kHello, Deadline::never()));
}

TEST(Dialler, SleepsWhileThereIsNothingToDo) {
  const Address where = loopback();
  const auto silent = *Listener::listen({&where, 1});
  const auto dialler = dialler_to(silent.addresses(), test::kPatience);
  int polls = 0;
  const Deadline while_waiting = Deadline::after(std::chrono::milliseconds(100));

  while (!while_waiting.passed()) {
    ASSERT_TRUE(dialler->poll().is_ok());
    ++polls;
    pollfd item{dialler->descriptor(), POLLIN, 0};
    ::poll(&item, 1, 100);
  }

  EXPECT_LT(polls, 10);
}

}  // namespace
}  // namespace hvd::net
