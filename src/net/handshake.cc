#include "net/handshake.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "net/keys/hmac.h"
#include "net/packing.h"

namespace hvd::net {
namespace {

constexpr uint32_t kMagic = 0x31647668;  // "hvd1"
// Of everything that ranks, stores and launchers say to each other; rises with every change of it.
// 2: records of the store, signed rosters, streams for bytes. The three messages here stay as they
// are, so that ends of different versions can tell each other.
constexpr uint32_t kVersion = 2;
constexpr std::string_view kDialLabel = "horovod dial";
constexpr std::string_view kAnswerLabel = "horovod answer";
constexpr std::string_view kConfirmLabel = "horovod confirm";
constexpr std::string_view kSessionLabel = "horovod session";

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

Status lost(std::string why) { return Status(StatusCode::kPeerLost, std::move(why)); }

}  // namespace

std::array<uint8_t, kHelloBytes> encode_hello(const Hello& hello) {
  std::string bytes;
  put(bytes, kMagic);
  put(bytes, kVersion);
  put(bytes, hello.epoch);
  put(bytes, hello.rank);
  put(bytes, hello.peer);
  put(bytes, hello.purpose);
  put(bytes, static_cast<uint32_t>(hello.verdict));
  put(bytes, uint32_t{0});  // reserved
  std::array<uint8_t, kHelloBytes> out;
  HVD_ASSERT(bytes.size() == out.size(), "the fields above make up 40 bytes");
  std::memcpy(out.data(), bytes.data(), out.size());
  return out;
}

Result<Hello> decode_hello(std::span<const uint8_t, kHelloBytes> bytes) {
  Unpacker in({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  Hello hello;
  const auto magic = in.get<uint32_t>();
  const auto version = in.get<uint32_t>();
  if (magic != kMagic) return corrupted("is not a horovod process");
  if (version != kVersion) {
    return precondition_error(concat("speaks version ", version,
                                     " of the network protocol, expected ", kVersion,
                                     "; all ranks need the same horovod"));
  }
  hello.epoch = in.get<uint64_t>();
  hello.rank = in.get<int32_t>();
  hello.peer = in.get<int32_t>();
  hello.purpose = in.get<uint64_t>();
  const auto verdict = in.get<uint32_t>();
  if (verdict > static_cast<uint32_t>(Verdict::kOtherVersion)) {
    return corrupted(concat("sent verdict ", verdict, ", which does not exist"));
  }
  hello.verdict = static_cast<Verdict>(verdict);
  return hello;
}

const char* verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::kWelcome:
      return "is welcome";
    case Verdict::kOtherEpoch:
      return "is in another epoch";
    case Verdict::kOtherRank:
      return "is not the rank that was looked for";
    case Verdict::kUnexpected:
      return "does not expect this connection";
    case Verdict::kTooMany:
      return "has no room for another connection";
    case Verdict::kOtherVersion:
      return "speaks another version of the network protocol";
  }
  return "";
}

Handshake::Handshake(Role role, const Key& key, const Hello& own, Judge judge)
    : role_(role), key_(key), own_(own), judge_(std::move(judge)) {}

Result<Handshake> Handshake::dial(const Key& key, const Hello& own) {
  Handshake out(Role::kDialler, key, own, nullptr);
  HVD_TRY(fill_random(std::span(out.dialler_).first(kNonceBytes)));
  const auto hello = encode_hello(own);
  std::copy(hello.begin(), hello.end(), out.dialler_.begin() + kNonceBytes);
  out.send_opening(out.dialler_, kDialLabel);
  return out;
}

Result<Handshake> Handshake::accept(const Key& key, const Hello& own, Judge judge,
                                    Freshness is_fresh) {
  Handshake out(Role::kAcceptor, key, own, std::move(judge));
  out.is_fresh_ = std::move(is_fresh);
  HVD_TRY(fill_random(std::span(out.acceptor_).first(kNonceBytes)));
  out.expect_bytes(kOpeningBytes);
  return out;
}

Digest Handshake::proof(std::string_view label) const {
  // In the proof of message 1 the acceptor's half is not known yet, and left out.
  if (label == kDialLabel) return hmac_sha256(key_.bytes(), {bytes_of(label), dialler_});
  return hmac_sha256(key_.bytes(), {bytes_of(label), dialler_, acceptor_});
}

Key Handshake::session_key() const {
  HVD_ASSERT(state_ == State::kDone, "only a finished handshake has a session");
  return Key(proof(kSessionLabel));
}

void Handshake::expect_bytes(size_t count) {
  in_bytes_ = count;
  in_done_ = 0;
  state_ = State::kWaitsToRead;
}

void Handshake::send_opening(std::span<const uint8_t> half, std::string_view label) {
  const Digest digest = proof(label);
  std::copy(half.begin(), half.end(), out_.begin());
  std::copy(digest.begin(), digest.end(), out_.begin() + static_cast<ptrdiff_t>(half.size()));
  out_bytes_ = kOpeningBytes;
  out_done_ = 0;
  state_ = State::kWaitsToWrite;
}

void Handshake::fail(Status why) {
  failure_ = std::move(why);
  state_ = State::kFailed;
}

Handshake::State Handshake::advance(int socket) {
  bool moved = true;
  while (moved && state_ != State::kDone && state_ != State::kFailed) {
    moved = state_ == State::kWaitsToRead ? read(socket) : write(socket);
  }
  return state_;
}

// Never takes a byte more than the message: what follows belongs to the stream.
bool Handshake::read(int socket) {
  const ssize_t got = recv(socket, in_.data() + in_done_, in_bytes_ - in_done_, MSG_DONTWAIT);
  if (got < 0 && errno == EINTR) return true;
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  if (got < 0) return fail(lost(std::strerror(errno))), false;
  if (got == 0) {
    refused_ = role_ == Role::kDialler && in_done_ == 0;
    return fail(lost("closed the connection during the handshake (does it have the same key?)")),
           false;
  }
  in_done_ += static_cast<size_t>(got);
  if (in_done_ < in_bytes_) return true;
  message_read();
  return true;
}

bool Handshake::write(int socket) {
  const ssize_t sent =
      send(socket, out_.data() + out_done_, out_bytes_ - out_done_, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && errno == EINTR) return true;
  if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  if (sent < 0) return fail(lost(std::strerror(errno))), false;
  out_done_ += static_cast<size_t>(sent);
  if (out_done_ == out_bytes_) message_written();
  return true;
}

void Handshake::message_read() {
  if (role_ == Role::kDialler) return answer_read();
  return step_ == 0 ? opening_read() : confirmation_read();
}

void Handshake::message_written() {
  ++step_;
  if (role_ == Role::kAcceptor) {
    if (!refusal_.is_ok()) return fail(refusal_);
    if (own_.verdict != Verdict::kWelcome) {
      return fail(
          precondition_error(concat("came although this end ", verdict_text(own_.verdict))));
    }
    return expect_bytes(kProofBytes);
  }
  if (step_ == 1) return expect_bytes(kOpeningBytes);
  state_ = State::kDone;
}

// Message 1, at the acceptor.
void Handshake::opening_read() {
  std::copy_n(in_.begin(), dialler_.size(), dialler_.begin());
  const Digest expected = proof(kDialLabel);
  if (!equal_in_constant_time(expected, std::span(in_).last(kProofBytes))) {
    return fail(precondition_error("does not know the key of this job"));
  }
  std::array<uint8_t, kNonceBytes> nonce;
  std::copy_n(dialler_.begin(), nonce.size(), nonce.begin());
  if (is_fresh_ && !is_fresh_(nonce)) {
    return fail(Status(StatusCode::kAborted, "repeats an old handshake"));
  }
  proven_ = true;
  const auto hello = decode_hello(std::span(dialler_).subspan<kNonceBytes, kHelloBytes>());
  if (hello) {
    peer_ = *hello;
    own_.peer = peer_.rank;
    own_.purpose = peer_.purpose;
    own_.verdict = judge_(peer_);
  } else {
    // It has the key, so it may know: our answer names our version.
    refusal_ = hello.status();
    own_.verdict = Verdict::kOtherVersion;
  }
  const auto answer = encode_hello(own_);
  std::copy(answer.begin(), answer.end(), acceptor_.begin() + kNonceBytes);
  step_ = 1;
  send_opening(acceptor_, kAnswerLabel);
}

// Message 2, at the dialler.
void Handshake::answer_read() {
  std::copy_n(in_.begin(), acceptor_.size(), acceptor_.begin());
  if (!equal_in_constant_time(proof(kAnswerLabel), std::span(in_).last(kProofBytes))) {
    return fail(precondition_error("does not know the key of this job"));
  }
  proven_ = true;
  const auto hello = decode_hello(std::span(acceptor_).subspan<kNonceBytes, kHelloBytes>());
  if (!hello) {
    peer_.verdict = Verdict::kOtherVersion;
    return fail(hello.status());
  }
  peer_ = *hello;
  if (peer_.verdict != Verdict::kWelcome) {
    const std::string more = peer_.verdict == Verdict::kOtherEpoch
                                 ? concat(": ", peer_.epoch, ", expected ", own_.epoch)
                             : peer_.verdict == Verdict::kOtherRank
                                 ? concat(": rank ", peer_.rank, ", expected ", own_.peer)
                                 : "";
    return fail(precondition_error(concat(verdict_text(peer_.verdict), more)));
  }
  if (own_.peer != kAnyRank && peer_.rank != own_.peer) {
    return fail(precondition_error(concat("is rank ", peer_.rank, ", expected ", own_.peer)));
  }
  const Digest confirmation = proof(kConfirmLabel);
  std::copy(confirmation.begin(), confirmation.end(), out_.begin());
  out_bytes_ = kProofBytes;
  out_done_ = 0;
  state_ = State::kWaitsToWrite;
}

// Message 3, at the acceptor.
void Handshake::confirmation_read() {
  if (!equal_in_constant_time(proof(kConfirmLabel), std::span(in_).first(kProofBytes))) {
    return fail(precondition_error("repeats an old handshake"));
  }
  state_ = State::kDone;
}

}  // namespace hvd::net
