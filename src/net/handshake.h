// handshake.h - both ends of a fresh connection prove that they know the job's key, before either
// looks at anything the other says. A state machine over a non-blocking socket; one thread at a
// time; never blocks.
//
//   1. dialler  -> acceptor: nonce d, hello d, HMAC(key, "dial",    d)
//   2. acceptor -> dialler:  nonce a, hello a, HMAC(key, "answer",  d, a)
//   3. dialler  -> acceptor:                   HMAC(key, "confirm", d, a)
//
// where d and a stand for nonce and hello of that end. All messages have a fixed size. The acceptor
// says nothing until 1 is proven, so a stranger learns nothing; the labels keep a message from
// being reflected, and the nonces keep it from being used again.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "net/keys/key.h"

namespace hvd::net {

inline constexpr int32_t kAnyRank = -1;  // a store server or launcher is no rank

// What the acceptor thinks of a dialler that has proven itself. Travels in its hello.
enum class Verdict : uint32_t {
  kWelcome = 0,
  kOtherEpoch = 1,
  kOtherRank = 2,   // the dialler looked for somebody else
  kUnexpected = 3,  // a rank or purpose that has no business here
  kTooMany = 4,     // no room for another connection
  kOtherVersion = 5,
};

struct Hello {
  uint64_t epoch = 0;
  int32_t rank = kAnyRank;  // who speaks
  int32_t peer = kAnyRank;  // dialler: whom it looks for; acceptor: whom it answers
  uint64_t purpose = 0;
  Verdict verdict = Verdict::kWelcome;

  bool operator==(const Hello&) const = default;
};

// The acceptor's side of the decision; sees only hellos that have been proven.
using Judge = std::function<Verdict(const Hello& dialler)>;

inline constexpr size_t kNonceBytes = 32;
// Whether the acceptor sees this number of a dialler for the first time. Asked only with a proof.
using Freshness = std::function<bool(const std::array<uint8_t, kNonceBytes>& nonce)>;
inline constexpr size_t kHelloBytes = 40;
inline constexpr size_t kProofBytes = 32;
inline constexpr size_t kOpeningBytes = kNonceBytes + kHelloBytes + kProofBytes;  // messages 1, 2

class Handshake {
 public:
  enum class State { kWaitsToRead, kWaitsToWrite, kDone, kFailed };

  // For a socket that is connected, or is being connected and has become writable.
  static Result<Handshake> dial(const Key& key, const Hello& own);
  // `own.peer`, `own.purpose` and `own.verdict` are filled in from what the dialler says.
  // A dialler whose number is not fresh repeats a recording: it gets no byte, as strangers do.
  static Result<Handshake> accept(const Key& key, const Hello& own, Judge judge,
                                  Freshness is_fresh = nullptr);

  // Reads and writes what is possible now.
  State advance(int socket);
  State state() const { return state_; }
  // Why, once failed: "closed the connection ..."; speaks of the other end, whom the caller names.
  const Status& failure() const { return failure_; }
  // The other end's words; valid when done, and for an acceptor once is_proven().
  const Hello& peer() const { return peer_; }
  // Has the other end shown a proof (message 1 or 2) that only the key gives? Message 1 may be a
  // recording, so an acceptor prefers nobody for it.
  bool is_proven() const { return proven_; }
  // Dialler: the other end read our proof and closed the connection in order, without a word. Our
  // acceptors do that to those who have another key; whom they drop for other reasons is reset.
  bool is_refused() const { return refused_; }
  // A secret of this connection alone (both nonces go into it): the key of TLS on top of it.
  Key session_key() const;

 private:
  enum class Role : uint8_t { kDialler, kAcceptor };

  Handshake(Role role, const Key& key, const Hello& own, Judge judge);
  bool read(int socket);
  bool write(int socket);
  void expect_bytes(size_t count);
  void send_opening(std::span<const uint8_t> half, std::string_view label);
  void message_read();
  void message_written();
  void opening_read();
  void answer_read();
  void confirmation_read();
  Digest proof(std::string_view label) const;
  void fail(Status why);

  Role role_;
  State state_ = State::kFailed;
  Key key_;
  Hello own_{}, peer_{};
  Judge judge_;
  Freshness is_fresh_;
  bool proven_ = false, refused_ = false;
  uint8_t step_ = 0;  // messages behind us
  // Nonce and hello of either end, as they were sent.
  std::array<uint8_t, kNonceBytes + kHelloBytes> dialler_{}, acceptor_{};
  std::array<uint8_t, kOpeningBytes> in_{}, out_{};
  size_t in_bytes_ = 0, in_done_ = 0, out_bytes_ = 0, out_done_ = 0;
  Status failure_;
  Status refusal_;  // acceptor: of a hello that it cannot read; once the answer is written
};

// 40 bytes: magic, version, epoch, rank, peer, purpose, verdict; little endian.
std::array<uint8_t, kHelloBytes> encode_hello(const Hello& hello);
Result<Hello> decode_hello(std::span<const uint8_t, kHelloBytes> bytes);
const char* verdict_text(Verdict verdict);

}  // namespace hvd::net
