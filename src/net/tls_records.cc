#include "net/tls_records.h"

#include <algorithm>
#include <string_view>

#include "net/cipher/wipe.h"
#include "net/keys/hmac.h"

namespace hvd::net {
namespace {

constexpr uint8_t kOuterContent = 23, kVersionHigh = 3, kVersionLow = 3;  // of every record

// HKDF-Expand-Label of RFC 8446, 7.1, without a context; up to 32 bytes are the start of one block.
Digest expand_label(const Key& secret, std::string_view label, size_t bytes) {
  constexpr std::string_view kPrefix = "tls13 ";
  const uint8_t head[] = {0, static_cast<uint8_t>(bytes),
                          static_cast<uint8_t>(kPrefix.size() + label.size())};
  constexpr uint8_t kEnd[] = {0, 1};  // no context; block 1
  const auto bytes_of = [](std::string_view text) {
    return std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  };
  return hmac_sha256(secret.bytes(), {head, bytes_of(kPrefix), bytes_of(label), kEnd});
}

std::array<uint8_t, TlsRecords::kHeadBytes> head_of(size_t bytes) {
  const size_t sealed = bytes + AesGcm::kMoreBytes;
  return {kOuterContent, kVersionHigh, kVersionLow, static_cast<uint8_t>(sealed >> 8),
          static_cast<uint8_t>(sealed)};
}

}  // namespace

std::unique_ptr<TlsRecords> TlsRecords::create(const Key& secret) {
  std::unique_ptr<TlsRecords> out(new TlsRecords(secret));
  if (!out->use_secret()) return nullptr;
  return out;
}

bool TlsRecords::use_secret() {
  Digest key = expand_label(secret_, "key", kGcmKeyBytes);
  const Digest nonce = expand_label(secret_, "iv", kGcmNonceBytes);
  GcmKey first;
  std::copy_n(key.begin(), first.size(), first.begin());
  std::copy_n(nonce.begin(), start_.size(), start_.begin());
  cipher_ = make_aes_gcm(first);
  wipe(key);
  wipe(first);
  count_ = 0;
  return cipher_ != nullptr;
}

bool TlsRecords::renew() {
  secret_ = Key(expand_label(secret_, "traffic upd", kKeyBytes));
  return use_secret();
}

GcmNonce TlsRecords::next_nonce() {
  GcmNonce nonce = start_;
  for (size_t i = 0; i < sizeof count_; ++i)
    nonce[nonce.size() - 1 - i] ^= static_cast<uint8_t>(count_ >> 8 * i);
  ++count_;
  return nonce;
}

bool TlsRecords::seal(std::span<const uint8_t> bytes, TlsContent content, uint8_t* out) {
  const auto head = head_of(bytes.size());
  const bool is_sealed =
      cipher_->seal(next_nonce(), head, bytes, static_cast<uint8_t>(content), out + kHeadBytes);
  std::copy(head.begin(), head.end(), out);
  return is_sealed;
}

size_t TlsRecords::length_of(std::span<const uint8_t, kHeadBytes> head) {
  const size_t sealed = size_t{head[3]} << 8 | head[4];
  const bool is_ours = head[0] == kOuterContent && head[1] == kVersionHigh &&
                       head[2] == kVersionLow && sealed >= AesGcm::kMoreBytes &&
                       sealed <= kMostBytes + AesGcm::kMoreBytes;
  return is_ours ? kHeadBytes + sealed : 0;
}

bool TlsRecords::open(std::span<const uint8_t> record, uint8_t* out, TlsContent& content) {
  uint8_t last = 0;
  const bool is_good =
      cipher_->open(next_nonce(), record.first(kHeadBytes), record.subspan(kHeadBytes), out, last);
  content = static_cast<TlsContent>(last);
  return is_good;
}

}  // namespace hvd::net
