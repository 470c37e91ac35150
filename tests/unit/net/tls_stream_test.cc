#include "net/tls_stream.h"

#include <gmock/gmock.h>

#include <thread>
#include <vector>

#include "tests/unit/net/sockets.h"

namespace hvd::net {
namespace {

using test::key_of;
using test::send_text;
using test::socket_pair;
using test::wait_until;
using ::testing::HasSubstr;
using ::testing::Not;

class TlsStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const Status loaded = load_tls(); !loaded) GTEST_SKIP() << loaded.message();
  }
};

struct TlsEnds {
  std::unique_ptr<Stream> client, server;
};

TlsEnds make_tls_ends(const Key& client_key = key_of(1), const Key& server_key = key_of(1)) {
  auto [a, b] = socket_pair();
  return {std::move(*make_tls_stream(std::move(a), "rank 1", client_key, TlsRole::kClient)),
          std::move(*make_tls_stream(std::move(b), "rank 0", server_key, TlsRole::kServer))};
}

Result<size_t> receive_into(Stream& stream, std::string& out) {
  char buffer[3000];  // not a divisor of a record, so that bytes stay buffered
  const iovec part{buffer, sizeof buffer};
  const auto got = stream.receive({&part, 1});
  if (got) out.append(buffer, *got);
  return got;
}

// Sends `text` in pieces that fit and reads it at the other end.
std::string carry(Stream& from, Stream& to, const std::string& text) {
  std::string out;
  size_t sent = 0;
  wait_until({}, [&] {
    char none;
    const iovec nothing{&none, 0};
    EXPECT_TRUE(from.receive({&nothing, 1}));
    if (sent < text.size()) sent += *send_text(from, std::string_view(text).substr(sent));
    do {
      const auto got = receive_into(to, out);
      EXPECT_TRUE(got) << got.status().message();
    } while (to.has_buffered());
    // The first messages of TLS itself go both ways.
    std::string back;
    EXPECT_TRUE(receive_into(from, back));
    return out.size() >= text.size();
  });
  return out;
}

std::string pattern(size_t count) {
  std::string text(count, '\0');
  for (size_t i = 0; i < count; ++i) text[i] = static_cast<char>(i * 7 + i / 251);
  return text;
}

TEST_F(TlsStreamTest, CarriesBytesBothWays) {
  TlsEnds ends = make_tls_ends();

  EXPECT_EQ(carry(*ends.client, *ends.server, "hello"), "hello");
  EXPECT_EQ(carry(*ends.server, *ends.client, "world"), "world");
}

TEST_F(TlsStreamTest, CarriesMoreThanTheSocketHolds) {
  TlsEnds ends = make_tls_ends();
  const std::string text = pattern(5 << 20);

  EXPECT_TRUE(carry(*ends.client, *ends.server, text) == text);
  EXPECT_TRUE(carry(*ends.server, *ends.client, text) == text);
}

// A sender that was told "no room" may come back with fewer bytes than it had offered.
TEST_F(TlsStreamTest, KeepsTheOrderWhenOffersShrinkAndGrow) {
  TlsEnds ends = make_tls_ends();
  ASSERT_EQ(carry(*ends.client, *ends.server, "up"), "up");
  const std::string text = pattern(2 << 20);
  std::string out;
  size_t sent = 0;
  unsigned round = 0;

  ASSERT_TRUE(wait_until({}, [&] {
    for (size_t taken = 1; taken > 0 && sent < text.size();) {
      const size_t offer = std::min<size_t>(text.size() - sent, 1 + (++round * 7919) % 40000);
      taken = *send_text(*ends.client, std::string_view(text).substr(sent, offer));
      EXPECT_LE(taken, offer);
      sent += taken;
    }
    while (*receive_into(*ends.server, out) > 0) {
    }
    return out.size() == text.size();
  }));

  EXPECT_TRUE(out == text);
}

// One sends and one receives at each end, from the first message of TLS on.
TEST_F(TlsStreamTest, SendsAndReceivesOnThreadsOfTheirOwn) {
  TlsEnds ends = make_tls_ends();
  const std::string text = pattern(2 << 20);
  const auto send_all = [&text](Stream& stream) {
    const Deadline deadline = test::patience();
    for (size_t sent = 0; sent < text.size() && !deadline.passed();) {
      const auto taken = send_text(stream, std::string_view(text).substr(sent, 100000));
      ASSERT_TRUE(taken) << taken.status().message();
      sent += *taken;
      if (*taken == 0) std::this_thread::yield();
    }
  };
  const auto receive_all = [&text](Stream& stream) {
    const Deadline deadline = test::patience();
    std::string out;
    while (out.size() < text.size() && !deadline.passed()) {
      const auto got = receive_into(stream, out);
      ASSERT_TRUE(got) << got.status().message();
      if (*got == 0) std::this_thread::yield();
    }
    EXPECT_TRUE(out == text);
  };
  std::vector<std::jthread> threads;

  for (Stream* end : {ends.client.get(), ends.server.get()}) {
    threads.emplace_back([&send_all, end] { send_all(*end); });
    threads.emplace_back([&receive_all, end] { receive_all(*end); });
  }
  threads.clear();
}

TEST_F(TlsStreamTest, ShowsNothingOfTheBytesOnTheWire) {
  auto [a, wire] = socket_pair();
  auto [b, other_wire] = socket_pair();
  const auto client = *make_tls_stream(std::move(a), "rank 1", key_of(1), TlsRole::kClient);
  const auto server = *make_tls_stream(std::move(b), "rank 0", key_of(1), TlsRole::kServer);
  std::string seen, out;
  const auto relay = [&](const UniqueFd& from, const UniqueFd& to) {
    char buffer[4096];
    const ssize_t got = recv(from.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got <= 0) return;
    seen.append(buffer, static_cast<size_t>(got));
    ASSERT_EQ(::send(to.get(), buffer, static_cast<size_t>(got), 0), got);
  };
  const std::string secret = "a gradient nobody should see";
  size_t sent = 0;

  ASSERT_TRUE(wait_until({}, [&] {
    std::string ignored;
    if (sent == 0) sent = *send_text(*client, secret);
    relay(wire, other_wire);
    EXPECT_TRUE(receive_into(*server, out));
    relay(other_wire, wire);
    EXPECT_TRUE(receive_into(*client, ignored));
    return out == secret;
  }));

  EXPECT_THAT(seen, Not(HasSubstr("gradient")));
}

TEST_F(TlsStreamTest, FailsBetweenDifferentKeys) {
  TlsEnds ends = make_tls_ends(key_of(1), key_of(2));
  Status failure;

  ASSERT_TRUE(wait_until({}, [&] {
    std::string out;
    for (Stream* end : {ends.server.get(), ends.client.get()}) {
      const auto got = receive_into(*end, out);
      if (!got) failure = got.status();
    }
    EXPECT_EQ(out, "");
    return !failure.is_ok();
  }));

  EXPECT_EQ(failure.code(), StatusCode::kPeerLost);
  EXPECT_THAT(failure.message(), HasSubstr("TLS"));
}

TEST_F(TlsStreamTest, NamesThePeerWhoseStreamEnds) {
  TlsEnds ends = make_tls_ends();
  ASSERT_EQ(carry(*ends.client, *ends.server, "x"), "x");
  ends.server.reset();
  Status failure;

  ASSERT_TRUE(wait_until({ends.client->descriptor()}, [&] {
    std::string out;
    failure = receive_into(*ends.client, out).status();
    return !failure.is_ok();
  }));

  EXPECT_EQ(failure.code(), StatusCode::kPeerLost);
  EXPECT_THAT(failure.message(), HasSubstr("rank 1: "));
  EXPECT_EQ(send_text(*ends.client, "y").status().code(), StatusCode::kPeerLost);
}

}  // namespace
}  // namespace hvd::net
