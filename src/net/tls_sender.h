// tls_sender.h - the half of a TLS stream that its sending thread owns: records that wait to leave.
#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "net/tls_records.h"

namespace hvd::net {

inline constexpr size_t kTlsKeyUpdateBytes = 5;  // of the message that a new key follows
// From here on a record is encrypted from where it lies, and opened where it belongs; less is
// copied, so that small parts share a record.
inline constexpr size_t kWorthAPass = 4 << 10;

// A place in the parts that a stream was given, and what follows it there.
class Cursor {
 public:
  Cursor(std::span<const iovec> parts, size_t skip) : parts_(parts) {
    for (const iovec& part : parts) left_ += part.iov_len;
    left_ -= skip;
    offset_ = skip;
    settle();
  }
  size_t left() const { return left_; }
  uint8_t* here() const { return static_cast<uint8_t*>(parts_[part_].iov_base) + offset_; }
  size_t bytes_here() const { return left_ == 0 ? 0 : parts_[part_].iov_len - offset_; }
  void advance(size_t bytes) {
    left_ -= bytes;
    offset_ += bytes;
    settle();
  }

 private:
  void settle() {
    while (left_ > 0 && offset_ >= parts_[part_].iov_len) offset_ -= parts_[part_++].iov_len;
  }

  std::span<const iovec> parts_;
  size_t part_ = 0, offset_ = 0, left_ = 0;
};

class TlsSender {
 public:
  // `peer` is the stream's.
  TlsSender(int socket, const std::string& peer, uint64_t records_per_key)
      : socket_(socket), peer_(peer), records_per_key_(records_per_key) {}

  void start(std::unique_ptr<TlsRecords> records) { records_ = std::move(records); }
  // As Stream::send().
  Result<size_t> send(std::span<const iovec> parts);
  // The other end wants a new key of this one (RFC 8446, 4.6.3). Any thread.
  void want_new_key() { wants_new_key_.store(true, std::memory_order_relaxed); }

 private:
  // Leave by one system call. More would not stay in the processor's cache.
  static constexpr size_t kRecordsPerSend = 4;
  struct Leaving {
    size_t end;    // in out_
    size_t bytes;  // of the caller
  };

  bool seal_some(Cursor from);
  bool seal_one(Cursor& from);
  bool renew_key();
  void add_leaving(size_t record_bytes, size_t bytes);
  void account_for(size_t sent);

  const int socket_;
  const std::string& peer_;
  const uint64_t records_per_key_;
  std::unique_ptr<TlsRecords> records_;
  // Records that could not leave are kept, and the caller's bytes in them count as taken once they
  // have left: it offers them again until then.
  std::vector<uint8_t> out_;
  size_t out_begin_ = 0, out_end_ = 0;
  std::array<Leaving, 2 * kRecordsPerSend> leaving_{};
  size_t leaving_begin_ = 0, leaving_end_ = 0;
  size_t ahead_ = 0;  // bytes that left but were offered no more when they did
  std::atomic<bool> wants_new_key_ = false;
  Status failure_;
};

}  // namespace hvd::net
