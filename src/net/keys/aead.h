// aead.h - ChaCha20-Poly1305 (RFC 8439): bytes that nobody can read or change without the key. Our
// own, because what protects the rendezvous must not depend on a library that a host may lack.
// No branch and no address depends on a secret. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "net/keys/key.h"

namespace hvd::net {

inline constexpr size_t kTagBytes = 16;
inline constexpr size_t kAeadNonceBytes = 12;
using Tag = std::array<uint8_t, kTagBytes>;
using AeadNonce = std::array<uint8_t, kAeadNonceBytes>;

// Encrypts `bytes` in place. `header` is not encrypted, but covered by the tag. A nonce serves a
// key once.
Tag seal(const Key& key, const AeadNonce& nonce, std::span<const uint8_t> header,
         std::span<uint8_t> bytes);

// Decrypts in place. False: tag, header or bytes are not what seal() made; nothing was decrypted.
[[nodiscard]] bool unseal(const Key& key, const AeadNonce& nonce, std::span<const uint8_t> header,
                          std::span<uint8_t> bytes, const Tag& tag);

}  // namespace hvd::net
