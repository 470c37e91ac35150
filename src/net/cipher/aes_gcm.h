// aes_gcm.h - AES-128-GCM (NIST SP 800-38D) in the shape in which TLS 1.3 uses it: a record is the
// bytes, one more byte that says what they are, and a tag. One thread at a time per object.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace hvd::net {

inline constexpr size_t kGcmKeyBytes = 16, kGcmNonceBytes = 12, kGcmTagBytes = 16;
using GcmKey = std::array<uint8_t, kGcmKeyBytes>;
using GcmNonce = std::array<uint8_t, kGcmNonceBytes>;

class AesGcm {
 public:
  // What a record is longer than the bytes in it.
  static constexpr size_t kMoreBytes = 1 + kGcmTagBytes;

  virtual ~AesGcm() = default;
  // Encrypts `bytes` and the byte `last` behind them, and authenticates them with `header`, to
  // bytes.size() + kMoreBytes bytes at `out`. In place, or at memory that does not overlap. Never
  // twice with the same nonce.
  virtual bool seal(const GcmNonce& nonce, std::span<const uint8_t> header,
                    std::span<const uint8_t> bytes, uint8_t last, uint8_t* out) = 0;
  // The other way round, for at least kMoreBytes bytes. False: they are not as they were sealed,
  // and `out` holds zeros.
  virtual bool open(const GcmNonce& nonce, std::span<const uint8_t> header,
                    std::span<const uint8_t> sealed, uint8_t* out, uint8_t& last) = 0;
};

// With vectors of the processor's AES instructions, about twice as quick as OpenSSL 3.0. Null: this
// processor has none, or none so wide.
enum class GcmVectors { kWidest, k256Bits, k512Bits };
std::unique_ptr<AesGcm> make_vector_aes_gcm(const GcmKey& key,
                                            GcmVectors vectors = GcmVectors::kWidest);
// With OpenSSL's. Null: OpenSSL is not there or fails.
std::unique_ptr<AesGcm> make_openssl_aes_gcm(const GcmKey& key);
// The quicker one that is there.
std::unique_ptr<AesGcm> make_aes_gcm(const GcmKey& key);

}  // namespace hvd::net
