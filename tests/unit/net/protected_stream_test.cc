// Streams that protect what they carry, attacked from the way between their ends. What holds for
// our own records holds for TLS.
#include <gmock/gmock.h>

#include "tests/unit/net/wire.h"

namespace hvd::net {
namespace {

using test::Cover;
using test::Wire;
using ::testing::HasSubstr;
using ::testing::Not;

class ProtectedStream : public testing::TestWithParam<Cover> {
 protected:
  void SetUp() override {
    if (GetParam() != Cover::kTls) return;
    if (const Status loaded = load_tls(); !loaded) GTEST_SKIP() << loaded.message();
  }
};

std::string wire_pattern(size_t count) {
  std::string text(count, '\0');
  for (size_t i = 0; i < count; ++i) text[i] = static_cast<char>(i * 7 + i / 251);
  return text;
}

void expect_refused(const Wire& wire, const std::string& what) {
  EXPECT_EQ(wire.failure().code(), StatusCode::kCorrupted) << what << wire.failure().message();
  EXPECT_THAT(wire.failure().message(), HasSubstr("rank 0: ")) << what;
  EXPECT_THAT(wire.failure().message(), HasSubstr("changed on the way")) << what;
}

TEST_P(ProtectedStream, CarriesLittleAndMoreThanTheSocketHolds) {
  Wire wire(GetParam());
  const std::string large = wire_pattern(3 << 20);

  EXPECT_EQ(wire.carry("hello"), "hello");
  EXPECT_TRUE(wire.carry(large) == large);
  EXPECT_EQ(wire.carry("world"), "world");
}

TEST_P(ProtectedStream, ShowsNothingOfTheBytesOnTheWire) {
  Wire wire(GetParam());
  wire.settle();

  EXPECT_EQ(wire.carry("a pickle nobody should see"), "a pickle nobody should see");

  EXPECT_GT(wire.seen().size(), 26u);
  EXPECT_THAT(wire.seen(), Not(HasSubstr("pickle")));
}

TEST_P(ProtectedStream, RefusesEveryByteThatWasChanged) {
  size_t length = 1;
  for (size_t at = 0; at < length; ++at) {
    Wire wire(GetParam());
    wire.settle();
    std::string bytes = wire.capture("an object");
    length = bytes.size();
    bytes[at] = static_cast<char>(bytes[at] ^ 1 << at % 8);

    std::string out = wire.inject(bytes);
    // A length that grew makes the stream wait for more: which an attacker has to send.
    if (wire.failure().is_ok()) out += wire.inject(std::string(70000, 'x'));

    EXPECT_EQ(out, "") << "byte " << at;
    EXPECT_EQ(wire.failure().code(), StatusCode::kCorrupted) << "byte " << at;
    EXPECT_THAT(wire.failure().message(), HasSubstr("rank 0: "));
  }
  EXPECT_GT(length, 9u);
}

TEST_P(ProtectedStream, RefusesARecordThatComesTwice) {
  Wire wire(GetParam());
  wire.settle();
  const std::string bytes = wire.capture("step 1");

  EXPECT_EQ(wire.inject(bytes), "step 1");
  EXPECT_EQ(wire.inject(bytes), "");

  expect_refused(wire, "repeated");
}

TEST_P(ProtectedStream, RefusesRecordsInAnotherOrder) {
  Wire wire(GetParam());
  wire.settle();
  const std::string first = wire.capture("step 1"), second = wire.capture("step 2");

  EXPECT_EQ(wire.inject(second + first), "");

  expect_refused(wire, "reordered");
}

TEST_P(ProtectedStream, RefusesWhatFollowsARecordThatWasLeftOut) {
  Wire wire(GetParam());
  wire.settle();
  (void)wire.capture("step 1");

  EXPECT_EQ(wire.inject(wire.capture("step 2")), "");

  expect_refused(wire, "left out");
}

TEST_P(ProtectedStream, RefusesARecordOfAnotherConnection) {
  Wire wire(GetParam());
  wire.settle();
  Wire other(GetParam(), {}, test::key_of(2));
  other.settle();

  EXPECT_EQ(wire.inject(other.capture("of another connection")), "");

  expect_refused(wire, "of another connection");
}

TEST_P(ProtectedStream, EndsWithAnErrorWhenTheRestIsCutOff) {
  for (const size_t kept : {size_t{0}, size_t{1}, size_t{4}, size_t{10}}) {
    Wire wire(GetParam());
    wire.settle();
    const std::string bytes = wire.capture("an object");

    EXPECT_EQ(kept == 0 ? "" : wire.inject(bytes.substr(0, kept)), "");
    wire.hang_up();

    EXPECT_EQ(wire.failure().code(), StatusCode::kPeerLost) << kept;
    EXPECT_THAT(wire.failure().message(), HasSubstr("rank 0: the connection was closed")) << kept;
  }
}

TEST_P(ProtectedStream, GivesOutNothingBehindAChangeInTheMiddle) {
  Wire wire(GetParam());
  wire.settle();
  const std::string text = wire_pattern(1 << 20);
  size_t passed = 0;

  const std::string out = wire.carry(text, [&](std::string bytes) {
    if (passed < 500000 && passed + bytes.size() >= 500000) bytes[500000 - passed - 1] ^= 0x10;
    passed += bytes.size();
    return bytes;
  });

  EXPECT_LT(out.size(), 500000u);
  EXPECT_TRUE(text.starts_with(out));
  EXPECT_EQ(wire.failure().code(), StatusCode::kCorrupted) << wire.failure().message();
}

// Whoever sleeps until the descriptor is readable would sleep for ever.
TEST_P(ProtectedStream, TellsOfAnErrorBehindBytesThatItGaveOut) {
  Wire wire(GetParam());
  wire.settle();
  std::string bytes = wire.capture("good");
  const std::string bad = wire.capture("bad!");
  bytes += bad.substr(0, bad.size() - 1) + static_cast<char>(bad.back() ^ 1);

  const std::string out = wire.inject(bytes);

  EXPECT_EQ(out, "good");
  expect_refused(wire, "behind good bytes");
}

INSTANTIATE_TEST_SUITE_P(Covers, ProtectedStream, testing::Values(Cover::kSealed, Cover::kTls),
                         [](const auto& cover) {
                           return cover.param == Cover::kTls ? "Tls" : "Sealed";
                         });

TEST(SealedStream, DoesNotTakeItsOwnRecordsBack) {
  auto [a, wire] = test::socket_pair();
  const auto stream =
      make_sealed_stream(std::move(a), "rank 1", test::key_of(1), SealRole::kDialler);
  ASSERT_TRUE(test::send_text(*stream, "mine"));
  char bytes[100];
  const ssize_t got = recv(wire.get(), bytes, sizeof bytes, 0);
  ASSERT_GT(got, 4);
  ASSERT_EQ(::send(wire.get(), bytes, static_cast<size_t>(got), 0), got);
  char out[10];
  const iovec part{out, sizeof out};

  EXPECT_EQ(stream->receive({&part, 1}).status().code(), StatusCode::kCorrupted);
}

// The records on the wire that are as long as TLS's message about a new key.
size_t key_updates_in(const std::string& wire) {
  constexpr size_t kHead = 5, kKeyUpdate = 5 + 1 + 16;  // message, its type, tag
  size_t count = 0;
  for (size_t at = 0; at + kHead <= wire.size();) {
    const size_t length = static_cast<size_t>(static_cast<uint8_t>(wire[at + 3])) << 8 |
                          static_cast<uint8_t>(wire[at + 4]);
    count += length == kKeyUpdate ? 1 : 0;
    at += kHead + length;
  }
  return count;
}

TEST(TlsKeys, AreRenewedAfterSoManyRecords) {
  if (const Status loaded = load_tls(); !loaded) GTEST_SKIP() << loaded.message();
  Wire wire(Cover::kTls, {.records_per_key = 10});
  wire.settle();

  for (int i = 0; i < 100; ++i) {
    const std::string text = "message " + wire_pattern(static_cast<size_t>(20 + i));
    ASSERT_EQ(wire.carry(text), text) << i;
  }
  EXPECT_EQ(key_updates_in(wire.seen()), 10u);
  const std::string large = wire_pattern(2 << 20);  // 128 records, and sockets that are full
  EXPECT_TRUE(wire.carry(large) == large);
  EXPECT_NEAR(static_cast<double>(key_updates_in(wire.seen())), 22, 2);
}

TEST(TlsKeys, StayForLessThanThat) {
  if (const Status loaded = load_tls(); !loaded) GTEST_SKIP() << loaded.message();
  Wire wire(Cover::kTls);
  wire.settle();

  for (int i = 0; i < 100; ++i)
    ASSERT_EQ(wire.carry("a message of some length"), "a message of some length");

  EXPECT_EQ(key_updates_in(wire.seen()), 0u);
}

}  // namespace
}  // namespace hvd::net
