#include "net/tls_stream.h"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "base/parse.h"
#include "base/text.h"
#include "base/thread_annotations.h"
#include "net/socket_io.h"
#include "net/tls_records.h"
#include "net/tls_sender.h"

namespace hvd::net {
namespace {

// Room for what comes by one system call; doubles when it was full: most streams carry little.
constexpr size_t kLeastRoom = 4 << 10;
constexpr size_t kMostRoom = 8 * (TlsRecords::kMostBytes + TlsRecords::kMoreBytes);

// What the receiving thread owns.
class TlsReceiver {
 public:
  TlsReceiver(int socket, const std::string& peer, TlsSender& sender)
      : socket_(socket), peer_(peer), sender_(sender) {}

  void start(std::unique_ptr<TlsRecords> records) { records_ = std::move(records); }
  Result<size_t> receive(std::span<const iovec> parts);
  bool has_buffered() const {
    return !failure_.is_ok() || plain_begin_ < plain_end_ || has_record();
  }

 private:
  size_t next_length() const;
  bool has_record() const;
  Status open_record(Cursor& to);
  Status take_message(TlsContent content, std::span<const uint8_t> message);
  Status changed(std::string_view what) const {
    return corrupted(concat(peer_, ": TLS: ", what, ": bytes were changed on the way"));
  }
  void give(Cursor& to);
  Result<bool> read_more();

  const int socket_;
  const std::string& peer_;
  TlsSender& sender_;
  std::unique_ptr<TlsRecords> records_;
  // [begin, end) as it came; the record before it, opened.
  std::vector<uint8_t> in_;
  size_t in_begin_ = 0, in_end_ = 0, plain_begin_ = 0, plain_end_ = 0;
  bool is_drained_ = false, was_full_ = false;
  Status failure_;
};

size_t TlsReceiver::next_length() const {
  return TlsRecords::length_of(std::span<const uint8_t, TlsRecords::kHeadBytes>(
      in_.data() + in_begin_, TlsRecords::kHeadBytes));
}

bool TlsReceiver::has_record() const {
  const size_t have = in_end_ - in_begin_;
  // A head that cannot be is found out when the record is opened.
  return have >= TlsRecords::kHeadBytes && have >= next_length();
}

Status TlsReceiver::open_record(Cursor& to) {
  const size_t length = next_length();
  if (length == 0) return changed("what arrived is not a TLS record");
  const std::span<uint8_t> record(in_.data() + in_begin_, length);
  const size_t bytes = length - TlsRecords::kMoreBytes;
  // Straight to where it belongs, if it fits there.
  const bool is_direct = bytes >= kWorthAPass && to.bytes_here() >= bytes;
  uint8_t* const out = is_direct ? to.here() : record.data() + TlsRecords::kHeadBytes;
  TlsContent content{};
  if (!records_->open(record, out, content))
    return changed(concat("a record of ", bytes, " bytes is not as it was sent"));
  in_begin_ += length;
  if (content != TlsContent::kData) return take_message(content, {out, bytes});
  if (is_direct) {
    to.advance(bytes);
  } else {
    plain_begin_ = static_cast<size_t>(out - in_.data());
    plain_end_ = plain_begin_ + bytes;
  }
  return Status::ok();
}

// What TLS itself has to say. Only the other end can have written it.
Status TlsReceiver::take_message(TlsContent content, std::span<const uint8_t> message) {
  constexpr uint8_t kKeyUpdate[] = {24, 0, 0, 1};
  constexpr size_t kAlertBytes = 2;
  if (content == TlsContent::kHandshake && message.size() == kTlsKeyUpdateBytes &&
      std::equal(std::begin(kKeyUpdate), std::end(kKeyUpdate), message.begin()) &&
      message.back() <= 1) {
    if (message.back() == 1) sender_.want_new_key();
    if (records_->renew()) return Status::ok();
    return Status(StatusCode::kUnknownError, concat(peer_, ": TLS: no new key"));
  }
  if (content == TlsContent::kAlert && message.size() == kAlertBytes) {
    if (message[1] == 0)
      return Status(StatusCode::kPeerLost, concat(peer_, ": the connection was closed"));
    return Status(StatusCode::kPeerLost, concat(peer_, ": TLS: it sent alert ", int{message[1]}));
  }
  return corrupted(concat(peer_, ": TLS: a message of type ", static_cast<int>(content), " and ",
                          message.size(), " bytes, which no rank sends"));
}

void TlsReceiver::give(Cursor& to) {
  while (plain_begin_ < plain_end_ && to.left() > 0) {
    const size_t take = std::min(to.bytes_here(), plain_end_ - plain_begin_);
    std::memcpy(to.here(), in_.data() + plain_begin_, take);
    plain_begin_ += take;
    to.advance(take);
  }
}

// False: nothing more for now.
Result<bool> TlsReceiver::read_more() {
  if (in_begin_ > 0) {
    std::memmove(in_.data(), in_.data() + in_begin_, in_end_ - in_begin_);
    in_end_ -= in_begin_;
    in_begin_ = plain_begin_ = plain_end_ = 0;
  }
  if (was_full_ || in_end_ == in_.size())
    in_.resize(std::clamp(2 * in_.size(), kLeastRoom, kMostRoom));
  const iovec room{in_.data() + in_end_, in_.size() - in_end_};
  HVD_TRY_ASSIGN(const size_t got, receive_some(socket_, {&room, 1}));
  in_end_ += got;
  was_full_ = got == room.iov_len;
  is_drained_ = !was_full_;
  return got > 0;
}

Result<size_t> TlsReceiver::receive(std::span<const iovec> parts) {
  Cursor to(parts, 0);
  const size_t wanted = to.left();
  is_drained_ = false;
  while (to.left() > 0 && failure_.is_ok()) {
    if (plain_begin_ < plain_end_) {
      give(to);
    } else if (has_record()) {
      failure_ = open_record(to);
    } else {
      if (is_drained_) break;  // asking again would only cost time
      const auto more = read_more();
      if (!more) {
        failure_ = blame(peer_, more.status());
      } else if (!*more) {
        break;
      }
    }
  }
  const size_t done = wanted - to.left();
  if (done == 0 && !failure_.is_ok()) return failure_;
  return done;
}

class TlsStream final : public Stream {
 public:
  TlsStream(UniqueFd socket, std::string peer, const TlsOptions& options)
      : socket_(std::move(socket)),
        peer_(std::move(peer)),
        sender_(socket_.get(), peer_, options.records_per_key),
        receiver_(socket_.get(), peer_, sender_) {}

  Status open(const Key& key, TlsRole role) HVD_EXCLUDES(mutex_);

  Result<size_t> send(std::span<const iovec> parts) override {
    HVD_TRY_ASSIGN(const bool ready, is_ready());
    if (!ready) return size_t{0};
    return sender_.send(parts);
  }
  Result<size_t> receive(std::span<const iovec> parts) override {
    HVD_TRY_ASSIGN(const bool ready, is_ready());
    if (!ready) return size_t{0};
    return receiver_.receive(parts);
  }
  bool has_buffered() const override {
    switch (state_.load(std::memory_order_acquire)) {
      case State::kGreets:
        return false;
      case State::kFailed:
        return true;
      case State::kOpen:
        break;
    }
    return receiver_.has_buffered();
  }
  int descriptor() const override { return socket_.get(); }
  bool is_socket() const override { return true; }
  const std::string& peer() const override { return peer_; }

 private:
  enum class State { kGreets, kOpen, kFailed };

  Result<bool> is_ready() HVD_EXCLUDES(mutex_) {
    if (state_.load(std::memory_order_acquire) == State::kOpen) return true;
    return greet();
  }
  Result<bool> greet() HVD_EXCLUDES(mutex_);
  Status greet_locked() HVD_REQUIRES(mutex_);

  UniqueFd socket_;
  const std::string peer_;
  // Both threads may find the handshake unfinished; whoever finishes it starts both directions.
  Mutex mutex_;
  std::atomic<State> state_ = State::kGreets;
  std::unique_ptr<TlsHandshake> handshake_ HVD_GUARDED_BY(mutex_);
  Status failure_ HVD_GUARDED_BY(mutex_);  // of the handshake
  TlsSender sender_;
  TlsReceiver receiver_;
};

Status TlsStream::open(const Key& key, TlsRole role) {
  const MutexLock lock(mutex_);
  HVD_TRY_ASSIGN(handshake_, TlsHandshake::create(socket_.get(), key, role));
  // The server waits for the first message, and this end may well wait for the server before it
  // sends.
  return role == TlsRole::kClient ? greet_locked() : Status::ok();
}

Result<bool> TlsStream::greet() {
  const MutexLock lock(mutex_);
  HVD_TRY(greet_locked());
  return handshake_ == nullptr;
}

Status TlsStream::greet_locked() {
  if (!failure_) return failure_;
  if (handshake_ == nullptr) return Status::ok();
  if (const Status status = handshake_->advance(); !status) {
    state_.store(State::kFailed, std::memory_order_release);
    return failure_ = blame(peer_, status);
  }
  if (!handshake_->is_done()) return Status::ok();
  auto sending = TlsRecords::create(handshake_->send_secret());
  auto receiving = TlsRecords::create(handshake_->receive_secret());
  handshake_.reset();
  if (sending == nullptr || receiving == nullptr) {
    state_.store(State::kFailed, std::memory_order_release);
    return failure_ = Status(StatusCode::kUnknownError, concat(peer_, ": TLS: no cipher"));
  }
  sender_.start(std::move(sending));
  receiver_.start(std::move(receiving));
  state_.store(State::kOpen, std::memory_order_release);
  return Status::ok();
}

}  // namespace

Result<std::unique_ptr<Stream>> make_tls_stream(UniqueFd socket, std::string peer,
                                                const Key& session_key, TlsRole role,
                                                const TlsOptions& options) {
  auto stream = std::make_unique<TlsStream>(std::move(socket), std::move(peer), options);
  HVD_TRY(stream->open(session_key, role));
  return std::unique_ptr<Stream>(std::move(stream));
}

}  // namespace hvd::net
