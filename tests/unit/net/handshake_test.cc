#include "net/handshake.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "net/keys/hmac.h"
#include "tests/unit/net/sockets.h"

namespace hvd::net {
namespace {

using test::key_of;
using test::socket_pair;
using test::welcome;
using ::testing::HasSubstr;
using State = Handshake::State;

const Hello kDialler{.epoch = 7, .rank = 0, .peer = 1, .purpose = 99};
const Hello kAcceptor{.epoch = 7, .rank = 1};

struct Ends {
  UniqueFd dialler_socket, acceptor_socket;
  Handshake dialler, acceptor;
};

Ends make_ends(const Key& dialler_key, const Key& acceptor_key, Judge judge = welcome) {
  auto [a, b] = socket_pair();
  return {std::move(a), std::move(b), *Handshake::dial(dialler_key, kDialler),
          *Handshake::accept(acceptor_key, kAcceptor, std::move(judge))};
}

// Until neither can go on. A failed end closes its socket, as its owner would.
void run(Ends& ends) {
  for (int i = 0; i < 10; ++i) {
    if (ends.dialler.advance(ends.dialler_socket.get()) == State::kFailed) {
      ends.dialler_socket.reset();
    }
    if (ends.acceptor.advance(ends.acceptor_socket.get()) == State::kFailed) {
      ends.acceptor_socket.reset();
    }
  }
}

std::string drain(const UniqueFd& socket) {
  char buffer[4096];
  const ssize_t got = recv(socket.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  return std::string(buffer, got > 0 ? static_cast<size_t>(got) : 0);
}

TEST(Handshake, LetsTwoEndsWithTheSameKeyMeet) {
  Ends ends = make_ends(key_of(1), key_of(1));

  run(ends);

  ASSERT_EQ(ends.dialler.state(), State::kDone) << ends.dialler.failure().message();
  ASSERT_EQ(ends.acceptor.state(), State::kDone) << ends.acceptor.failure().message();
  EXPECT_EQ(ends.acceptor.peer(), kDialler);
  EXPECT_EQ(ends.dialler.peer().rank, 1);
  EXPECT_TRUE(equal_in_constant_time(ends.dialler.session_key().bytes(),
                                     ends.acceptor.session_key().bytes()));
}

TEST(Handshake, LeavesTheBytesBehindItInTheSocket) {
  Ends ends = make_ends(key_of(1), key_of(1));
  ends.dialler.advance(ends.dialler_socket.get());
  ends.acceptor.advance(ends.acceptor_socket.get());
  ASSERT_EQ(ends.dialler.advance(ends.dialler_socket.get()), State::kDone);
  ASSERT_EQ(send(ends.dialler_socket.get(), "data", 4, 0), 4);

  ASSERT_EQ(ends.acceptor.advance(ends.acceptor_socket.get()), State::kDone);

  EXPECT_EQ(drain(ends.acceptor_socket), "data");
}

TEST(Handshake, HasAnotherSessionKeyEachTime) {
  Ends one = make_ends(key_of(1), key_of(1)), two = make_ends(key_of(1), key_of(1));

  run(one);
  run(two);

  EXPECT_FALSE(
      equal_in_constant_time(one.dialler.session_key().bytes(), two.dialler.session_key().bytes()));
}

TEST(Handshake, TellsAStrangerNothing) {
  Ends ends = make_ends(key_of(2), key_of(1));
  ends.dialler.advance(ends.dialler_socket.get());

  EXPECT_EQ(ends.acceptor.advance(ends.acceptor_socket.get()), State::kFailed);

  EXPECT_THAT(ends.acceptor.failure().message(), HasSubstr("does not know the key"));
  EXPECT_FALSE(ends.acceptor.is_proven());
  EXPECT_EQ(drain(ends.dialler_socket), "");
  ends.acceptor_socket.reset();
  EXPECT_EQ(ends.dialler.advance(ends.dialler_socket.get()), State::kFailed);
  EXPECT_THAT(ends.dialler.failure().message(), HasSubstr("same key"));
}

TEST(Handshake, SaysNothingBeforeItHasReadTheWholeOpening) {
  Ends ends = make_ends(key_of(1), key_of(1));
  ends.dialler.advance(ends.dialler_socket.get());
  std::string opening = drain(ends.acceptor_socket);
  ASSERT_EQ(opening.size(), kOpeningBytes);

  for (const char byte : opening.substr(0, kOpeningBytes - 1)) {
    ASSERT_EQ(send(ends.dialler_socket.get(), &byte, 1, 0), 1);
    ASSERT_EQ(ends.acceptor.advance(ends.acceptor_socket.get()), State::kWaitsToRead);
    ASSERT_EQ(drain(ends.dialler_socket), "");
  }
}

// Whatever bit of the opening is wrong, nobody is let in.
TEST(Handshake, NoticesEveryChangedByteOfTheOpening) {
  for (size_t i = 0; i < kOpeningBytes; ++i) {
    Ends ends = make_ends(key_of(1), key_of(1));
    ends.dialler.advance(ends.dialler_socket.get());
    std::string opening = drain(ends.acceptor_socket);
    opening[i] = static_cast<char>(opening[i] ^ 1);
    ASSERT_EQ(send(ends.dialler_socket.get(), opening.data(), opening.size(), 0),
              static_cast<ssize_t>(opening.size()));

    EXPECT_EQ(ends.acceptor.advance(ends.acceptor_socket.get()), State::kFailed) << i;
  }
}

TEST(Handshake, NoticesEveryChangedByteOfTheAnswer) {
  for (size_t i = 0; i < kOpeningBytes; ++i) {
    Ends ends = make_ends(key_of(1), key_of(1));
    ends.dialler.advance(ends.dialler_socket.get());
    ends.acceptor.advance(ends.acceptor_socket.get());
    std::string answer = drain(ends.dialler_socket);
    answer[i] = static_cast<char>(answer[i] ^ 1);
    ASSERT_EQ(send(ends.acceptor_socket.get(), answer.data(), answer.size(), 0),
              static_cast<ssize_t>(answer.size()));

    EXPECT_EQ(ends.dialler.advance(ends.dialler_socket.get()), State::kFailed) << i;
  }
}

// An attacker who sends a dialler its own message back.
TEST(Handshake, FailsWhenReflected) {
  Ends ends = make_ends(key_of(1), key_of(1));
  ends.dialler.advance(ends.dialler_socket.get());
  const std::string opening = drain(ends.acceptor_socket);
  ASSERT_EQ(send(ends.acceptor_socket.get(), opening.data(), opening.size(), 0),
            static_cast<ssize_t>(opening.size()));

  EXPECT_EQ(ends.dialler.advance(ends.dialler_socket.get()), State::kFailed);
}

// An attacker who recorded all that a dialler once said, and says it again.
TEST(Handshake, FailsWhenReplayedToAnAcceptor) {
  Ends ends = make_ends(key_of(1), key_of(1));
  ends.dialler.advance(ends.dialler_socket.get());
  std::string recorded = drain(ends.acceptor_socket);
  ASSERT_EQ(send(ends.dialler_socket.get(), recorded.data(), recorded.size(), 0), 104);
  ends.acceptor.advance(ends.acceptor_socket.get());
  ASSERT_EQ(ends.dialler.advance(ends.dialler_socket.get()), State::kDone);
  recorded += drain(ends.acceptor_socket);
  ASSERT_EQ(recorded.size(), kOpeningBytes + kProofBytes);

  auto [attacker, socket] = socket_pair();
  auto acceptor = *Handshake::accept(key_of(1), kAcceptor, welcome);
  ASSERT_EQ(send(attacker.get(), recorded.data(), recorded.size(), 0),
            static_cast<ssize_t>(recorded.size()));

  EXPECT_EQ(acceptor.advance(socket.get()), State::kFailed);
  EXPECT_THAT(acceptor.failure().message(), HasSubstr("repeats an old handshake"));
}

TEST(Handshake, FailsWhenReplayedToADialler) {
  Ends ends = make_ends(key_of(1), key_of(1));
  ends.dialler.advance(ends.dialler_socket.get());
  ends.acceptor.advance(ends.acceptor_socket.get());
  const std::string recorded = drain(ends.dialler_socket);

  auto [socket, attacker] = socket_pair();
  auto dialler = *Handshake::dial(key_of(1), kDialler);
  ASSERT_EQ(send(attacker.get(), recorded.data(), recorded.size(), 0),
            static_cast<ssize_t>(recorded.size()));

  EXPECT_EQ(dialler.advance(socket.get()), State::kFailed);
  EXPECT_THAT(dialler.failure().message(), HasSubstr("does not know the key"));
}

TEST(Handshake, TellsADiallerOfTheJobWhyItIsRefused) {
  const struct {
    Verdict verdict;
    const char* text;
  } kCases[] = {{Verdict::kOtherEpoch, "is in another epoch: 7, expected 7"},
                {Verdict::kOtherRank, "is not the rank that was looked for: rank 1, expected 1"},
                {Verdict::kUnexpected, "does not expect this connection"},
                {Verdict::kTooMany, "has no room"}};
  for (const auto& [verdict, text] : kCases) {
    Ends ends =
        make_ends(key_of(1), key_of(1), [verdict = verdict](const Hello&) { return verdict; });

    run(ends);

    EXPECT_EQ(ends.dialler.state(), State::kFailed);
    EXPECT_TRUE(ends.dialler.is_proven());
    EXPECT_THAT(ends.dialler.failure().message(), HasSubstr(text));
    EXPECT_EQ(ends.acceptor.state(), State::kFailed);
  }
}

// Random number, hello of another version, and its proof, as that version would write them.
// `before` is the opening that it answers.
std::string opening_of_version(uint8_t version, const Hello& hello, std::string_view label,
                               std::string_view before = {}) {
  auto bytes = encode_hello(hello);
  bytes[4] = version;
  const std::string half = std::string(kNonceBytes, 'n') + std::string(bytes.begin(), bytes.end());
  const auto span_of = [](std::string_view text) {
    return std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  };
  const Digest digest =
      hmac_sha256(key_of(1).bytes(), {span_of(label), span_of(before), span_of(half)});
  return half + std::string(digest.begin(), digest.end());
}

TEST(Handshake, TellsADiallerOfAnotherVersionWhatItSpeaks) {
  Ends ends = make_ends(key_of(1), key_of(1));
  const std::string opening = opening_of_version(1, kDialler, "horovod dial");
  ASSERT_EQ(send(ends.dialler_socket.get(), opening.data(), opening.size(), 0),
            static_cast<ssize_t>(opening.size()));

  EXPECT_EQ(ends.acceptor.advance(ends.acceptor_socket.get()), State::kFailed);

  EXPECT_THAT(ends.acceptor.failure().message(),
              HasSubstr("speaks version 1 of the network protocol, expected 2; all ranks need the "
                        "same horovod"));
  const std::string answer = drain(ends.dialler_socket);
  ASSERT_EQ(answer.size(), kOpeningBytes);
  EXPECT_EQ(answer[kNonceBytes + 4], 2) << "the version of this one";
}

TEST(Handshake, KnowsAnAcceptorOfAnotherVersion) {
  Ends ends = make_ends(key_of(1), key_of(1));
  ends.dialler.advance(ends.dialler_socket.get());
  const std::string half = drain(ends.acceptor_socket).substr(0, kNonceBytes + kHelloBytes);
  const std::string answer = opening_of_version(3, kAcceptor, "horovod answer", half);
  ASSERT_EQ(send(ends.acceptor_socket.get(), answer.data(), answer.size(), 0),
            static_cast<ssize_t>(answer.size()));

  EXPECT_EQ(ends.dialler.advance(ends.dialler_socket.get()), State::kFailed);

  EXPECT_TRUE(ends.dialler.is_proven());
  EXPECT_EQ(ends.dialler.peer().verdict, Verdict::kOtherVersion) << "so nobody tries again";
  EXPECT_THAT(ends.dialler.failure().message(), HasSubstr("speaks version 3"));
}

TEST(Handshake, ReadsHellosItWrote) {
  const Hello hello{.epoch = UINT64_MAX - 5,
                    .rank = 65535,
                    .peer = kAnyRank,
                    .purpose = uint64_t{1} << 63,
                    .verdict = Verdict::kTooMany};

  const auto read = decode_hello(encode_hello(hello));

  ASSERT_TRUE(read);
  EXPECT_EQ(*read, hello);
}

TEST(Handshake, RefusesHellosOfOtherProgramsAndVersions) {
  auto bytes = encode_hello({});
  bytes[0] ^= 1;
  EXPECT_THAT(decode_hello(bytes).status().message(), HasSubstr("not a horovod process"));

  bytes = encode_hello({});
  bytes[4] = 9;
  EXPECT_THAT(decode_hello(bytes).status().message(), HasSubstr("version 9"));

  bytes = encode_hello({});
  bytes[32] = 77;
  EXPECT_THAT(decode_hello(bytes).status().message(), HasSubstr("verdict 77"));
}

}  // namespace
}  // namespace hvd::net
