#include "net/sealed_stream.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/parse.h"
#include "base/text.h"
#include "net/keys/aead.h"
#include "net/socket_io.h"

namespace hvd::net {
namespace {

constexpr size_t kHeadBytes = 4;
constexpr size_t kWholeBytes = kHeadBytes + kSealedRecordBytes + kTagBytes;
// The room for what comes doubles when it was full: a store has thousands of streams that carry
// little.
constexpr size_t kLeastRoom = 4 << 10, kMostRoom = 4 * kWholeBytes;

Key key_of_direction(const Key& session, SealRole sender) {
  const uint8_t mark = sender == SealRole::kDialler ? 'd' : 'a';
  return session.derive("horovod sealed", {&mark, 1});
}

AeadNonce nonce_of(uint64_t number) {
  AeadNonce nonce{};
  std::memcpy(nonce.data(), &number, sizeof number);
  return nonce;
}

class SealedStream final : public Stream {
 public:
  SealedStream(UniqueFd socket, std::string peer, const Key& session, SealRole role)
      : socket_(std::move(socket)),
        peer_(std::move(peer)),
        send_key_(key_of_direction(session, role)),
        receive_key_(key_of_direction(
            session, role == SealRole::kDialler ? SealRole::kAcceptor : SealRole::kDialler)) {}

  Result<size_t> send(std::span<const iovec> parts) override;
  Result<size_t> receive(std::span<const iovec> parts) override;
  bool has_buffered() const override {
    return !receive_failure_.is_ok() || plain_begin_ < plain_end_ || has_record();
  }
  int descriptor() const override { return socket_.get(); }
  bool is_socket() const override { return true; }
  const std::string& peer() const override { return peer_; }

 private:
  void seal_record(std::span<const iovec> parts, size_t skip);
  size_t give(std::span<const iovec> parts, size_t done);
  uint32_t head() const;
  bool has_record() const;
  Status open_record();
  Result<bool> read_more();

  UniqueFd socket_;
  const std::string peer_;

  // Sending. A record that could not leave is kept, and its bytes count as taken once it has left:
  // the caller offers them again until then.
  const Key send_key_;
  uint64_t sent_count_ = 0;
  std::vector<uint8_t> out_;
  size_t out_begin_ = 0, out_plain_ = 0;
  size_t ahead_ = 0;  // bytes that left but were offered no more when they did
  Status send_failure_;

  // Receiving: [begin, end) of `in_` as it came; the record before it, opened.
  const Key receive_key_;
  uint64_t received_count_ = 0;
  std::vector<uint8_t> in_;
  size_t in_begin_ = 0, in_end_ = 0, plain_begin_ = 0, plain_end_ = 0;
  bool is_drained_ = false, was_full_ = false;
  Status receive_failure_;
};

// What follows the first `skip` bytes of `parts`, as a record in `out_`.
void SealedStream::seal_record(std::span<const iovec> parts, size_t skip) {
  size_t offered = 0, count = 0;
  for (const iovec& part : parts) offered += part.iov_len;
  out_.resize(kHeadBytes + std::min(offered - skip, kSealedRecordBytes) + kTagBytes);
  uint8_t* const body = out_.data() + kHeadBytes;
  for (const iovec& part : parts) {
    const size_t from = std::min(skip, part.iov_len);
    skip -= from;
    const size_t take = std::min(part.iov_len - from, kSealedRecordBytes - count);
    if (take > 0) std::memcpy(body + count, static_cast<char*>(part.iov_base) + from, take);
    count += take;
  }
  const auto length = static_cast<uint32_t>(count);
  std::memcpy(out_.data(), &length, kHeadBytes);
  const Tag tag =
      seal(send_key_, nonce_of(sent_count_++), {out_.data(), kHeadBytes}, {body, count});
  std::memcpy(body + count, tag.data(), tag.size());
  out_begin_ = 0;
  out_plain_ = count;
}

Result<size_t> SealedStream::send(std::span<const iovec> parts) {
  if (!send_failure_) return send_failure_;
  size_t offered = 0, done = 0;
  for (const iovec& part : parts) offered += part.iov_len;
  while (done < offered) {
    const size_t known = std::min(ahead_, offered - done);
    ahead_ -= known;
    done += known;
    if (done == offered) break;
    if (out_plain_ == 0) seal_record(parts, done);
    const iovec rest{out_.data() + out_begin_, out_.size() - out_begin_};
    const auto sent = send_some(socket_.get(), {&rest, 1});
    if (!sent) {
      send_failure_ = blame(peer_, sent.status());
      if (done == 0) return send_failure_;
      return done;
    }
    out_begin_ += *sent;
    if (out_begin_ < out_.size()) return done;
    ahead_ = std::exchange(out_plain_, 0);
  }
  return done;
}

// Copies opened bytes to what follows the first `done` bytes of `parts`.
size_t SealedStream::give(std::span<const iovec> parts, size_t done) {
  size_t given = 0;
  for (const iovec& part : parts) {
    const size_t from = std::min(done, part.iov_len);
    done -= from;
    const size_t take = std::min(part.iov_len - from, plain_end_ - plain_begin_);
    if (take == 0) continue;
    std::memcpy(static_cast<char*>(part.iov_base) + from, in_.data() + plain_begin_, take);
    plain_begin_ += take;
    given += take;
  }
  return given;
}

uint32_t SealedStream::head() const {
  uint32_t length = 0;
  std::memcpy(&length, in_.data() + in_begin_, kHeadBytes);
  return length;
}

bool SealedStream::has_record() const {
  const size_t have = in_end_ - in_begin_;
  if (have < kHeadBytes) return false;
  // A length that cannot be is found out when the record is opened.
  const size_t length = head();
  return length > kSealedRecordBytes || have >= kHeadBytes + length + kTagBytes;
}

Status SealedStream::open_record() {
  const size_t length = head();
  if (length == 0 || length > kSealedRecordBytes) {
    return corrupted(concat(peer_, ": record ", received_count_, " has ", length,
                            " bytes, expected 1 to ", kSealedRecordBytes,
                            ": bytes were changed on the way"));
  }
  uint8_t* const body = in_.data() + in_begin_ + kHeadBytes;
  Tag tag;
  std::memcpy(tag.data(), body + length, tag.size());
  if (!unseal(receive_key_, nonce_of(received_count_), {in_.data() + in_begin_, kHeadBytes},
              {body, length}, tag)) {
    return corrupted(concat(peer_, ": record ", received_count_, " of ", length,
                            " bytes is not as it was sent: bytes were changed on the way"));
  }
  ++received_count_;
  plain_begin_ = in_begin_ + kHeadBytes;
  plain_end_ = plain_begin_ + length;
  in_begin_ = plain_end_ + kTagBytes;
  return Status::ok();
}

// False: nothing more for now.
Result<bool> SealedStream::read_more() {
  if (in_begin_ > 0) {
    std::memmove(in_.data(), in_.data() + in_begin_, in_end_ - in_begin_);
    in_end_ -= in_begin_;
    in_begin_ = plain_begin_ = plain_end_ = 0;
  }
  if (was_full_ || in_end_ == in_.size())
    in_.resize(std::clamp(2 * in_.size(), kLeastRoom, kMostRoom));
  const iovec room{in_.data() + in_end_, in_.size() - in_end_};
  HVD_TRY_ASSIGN(const size_t got, receive_some(socket_.get(), {&room, 1}));
  in_end_ += got;
  was_full_ = got == room.iov_len;
  is_drained_ = !was_full_;
  return got > 0;
}

Result<size_t> SealedStream::receive(std::span<const iovec> parts) {
  if (!receive_failure_) return receive_failure_;
  size_t wanted = 0, done = 0;
  for (const iovec& part : parts) wanted += part.iov_len;
  is_drained_ = false;
  while (done < wanted) {
    if (plain_begin_ < plain_end_) {
      done += give(parts, done);
      continue;
    }
    if (has_record()) {
      receive_failure_ = open_record();
      if (receive_failure_.is_ok()) continue;
      if (done > 0) return done;
      return receive_failure_;
    }
    if (is_drained_) break;  // asking again would only cost time
    const auto more = read_more();
    if (!more) {
      receive_failure_ = blame(peer_, more.status());
      if (done > 0) return done;
      return receive_failure_;
    }
    if (!*more) break;
  }
  return done;
}

}  // namespace

std::unique_ptr<Stream> make_sealed_stream(UniqueFd socket, std::string peer,
                                           const Key& session_key, SealRole role) {
  const int flags = fcntl(socket.get(), F_GETFL);
  if (flags >= 0 && (flags & O_NONBLOCK) == 0) fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK);
  return std::make_unique<SealedStream>(std::move(socket), std::move(peer), session_key, role);
}

}  // namespace hvd::net
