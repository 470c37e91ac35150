#include "net/tls_sender.h"

#include <algorithm>
#include <cstring>

#include "base/parse.h"
#include "base/text.h"
#include "net/socket_io.h"

namespace hvd::net {
namespace {

constexpr size_t kWholeBytes = TlsRecords::kMostBytes + TlsRecords::kMoreBytes;

}  // namespace

// Only between records: those in out_ were made with the old key.
bool TlsSender::renew_key() {
  const bool is_due = records_->count() >= records_per_key_;
  if (!is_due && !wants_new_key_.load(std::memory_order_relaxed)) return true;
  wants_new_key_.store(false, std::memory_order_relaxed);
  constexpr uint8_t kMessage[kTlsKeyUpdateBytes] = {24, 0, 0, 1, 0};  // the other end need not
  if (!records_->seal(kMessage, TlsContent::kHandshake, out_.data() + out_end_)) return false;
  add_leaving(kTlsKeyUpdateBytes + TlsRecords::kMoreBytes, 0);
  return records_->renew();
}

bool TlsSender::seal_one(Cursor& from) {
  uint8_t* const record = out_.data() + out_end_;
  uint8_t* const body = record + TlsRecords::kHeadBytes;
  const size_t most = std::min(from.left(), TlsRecords::kMostBytes);
  const size_t here = std::min(from.bytes_here(), most);
  size_t count = 0;
  bool is_sealed = false;
  if (here == most || here >= kWorthAPass) {
    count = here;
    is_sealed = records_->seal({from.here(), count}, TlsContent::kData, record);
    from.advance(count);
  } else {
    while (count < most) {
      const size_t take = std::min(from.bytes_here(), most - count);
      std::memcpy(body + count, from.here(), take);
      from.advance(take);
      count += take;
    }
    is_sealed = records_->seal({body, count}, TlsContent::kData, record);
  }
  add_leaving(count + TlsRecords::kMoreBytes, count);
  return is_sealed;
}

bool TlsSender::seal_some(Cursor from) {
  out_begin_ = out_end_ = 0;
  leaving_begin_ = leaving_end_ = 0;
  const size_t most = std::min(from.left() + TlsRecords::kMoreBytes, kRecordsPerSend * kWholeBytes);
  // Each record may have a message about a new key before it.
  const size_t more = kRecordsPerSend * (kTlsKeyUpdateBytes + 2 * TlsRecords::kMoreBytes);
  if (out_.size() < most + more) out_.resize(most + more);
  for (size_t i = 0; i < kRecordsPerSend && from.left() > 0; ++i) {
    if (!renew_key() || !seal_one(from)) return false;
  }
  return true;
}

void TlsSender::add_leaving(size_t record_bytes, size_t bytes) {
  out_end_ += record_bytes;
  leaving_[leaving_end_++] = {out_end_, bytes};
}

void TlsSender::account_for(size_t sent) {
  out_begin_ += sent;
  while (leaving_begin_ < leaving_end_ && leaving_[leaving_begin_].end <= out_begin_)
    ahead_ += leaving_[leaving_begin_++].bytes;
}

Result<size_t> TlsSender::send(std::span<const iovec> parts) {
  if (!failure_) return failure_;
  size_t offered = 0, done = 0;
  for (const iovec& part : parts) offered += part.iov_len;
  bool has_room = true;
  for (;;) {
    const size_t known = std::min(ahead_, offered - done);
    ahead_ -= known;
    done += known;
    if (done == offered || !has_room) return done;
    if (out_begin_ == out_end_ && !seal_some(Cursor(parts, done))) {
      failure_ = Status(StatusCode::kUnknownError, concat(peer_, ": TLS: the cipher failed"));
      return failure_;
    }
    const iovec rest{out_.data() + out_begin_, out_end_ - out_begin_};
    const auto sent = send_some(socket_, {&rest, 1});
    if (!sent) {
      failure_ = blame(peer_, sent.status());
      if (done == 0) return failure_;
      return done;
    }
    has_room = *sent == rest.iov_len;
    account_for(*sent);
  }
}

}  // namespace hvd::net
