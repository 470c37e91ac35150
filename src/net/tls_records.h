// tls_records.h - one direction of a TLS 1.3 connection behind its handshake: the records of RFC
// 8446, 5.2 under TLS_AES_128_GCM_SHA256, and the keys of 7.1 and 7.2. What OpenSSL's own records
// would be, byte for byte, without its copies and locks. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "net/cipher/aes_gcm.h"
#include "net/keys/key.h"

namespace hvd::net {

// Of the bytes in a record; the values of RFC 8446, 5.1.
enum class TlsContent : uint8_t { kAlert = 21, kHandshake = 22, kData = 23 };

class TlsRecords {
 public:
  static constexpr size_t kHeadBytes = 5;
  static constexpr size_t kMostBytes = 16 << 10;  // in a record
  static constexpr size_t kMoreBytes = kHeadBytes + AesGcm::kMoreBytes;

  // The traffic secret of this direction; null when there is no cipher.
  static std::unique_ptr<TlsRecords> create(const Key& secret);

  // The next record, with up to kMostBytes bytes, at `out`, which takes kMoreBytes more. `bytes`
  // may be out + kHeadBytes. False: the cipher failed, and nothing at `out` may be sent.
  bool seal(std::span<const uint8_t> bytes, TlsContent content, uint8_t* out);

  // How long the record is that starts with `head`; 0: no record of this connection starts so.
  static size_t length_of(std::span<const uint8_t, kHeadBytes> head);
  // Opens the next record. What was in it goes to `out`, kMoreBytes less than the record; in place
  // or elsewhere. False: it is not as it was sent, and `out` holds zeros.
  bool open(std::span<const uint8_t> record, uint8_t* out, TlsContent& content);

  // From now on the key that follows (RFC 8446, 7.2).
  bool renew();
  // Records under the key that is in use.
  uint64_t count() const { return count_; }

 private:
  explicit TlsRecords(const Key& secret) : secret_(secret) {}
  bool use_secret();
  GcmNonce next_nonce();

  Key secret_;
  std::unique_ptr<AesGcm> cipher_;
  GcmNonce start_{};
  uint64_t count_ = 0;
};

}  // namespace hvd::net
