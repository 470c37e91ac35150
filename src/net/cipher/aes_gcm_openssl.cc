#include <algorithm>

#include "net/cipher/aes_gcm.h"
#include "net/cipher/openssl.h"
#include "net/cipher/wipe.h"

namespace hvd::net {
namespace {

// Constants of OpenSSL's interface, which never change.
constexpr int kGetTag = 0x10, kSetTag = 0x11;

class OpensslAesGcm final : public AesGcm {
 public:
  explicit OpensslAesGcm(const openssl::Functions& functions) : f_(functions) {}
  ~OpensslAesGcm() override {
    f_.EVP_CIPHER_CTX_free(sealing_);
    f_.EVP_CIPHER_CTX_free(opening_);
  }
  OpensslAesGcm(const OpensslAesGcm&) = delete;
  OpensslAesGcm& operator=(const OpensslAesGcm&) = delete;

  bool start(const GcmKey& key) {
    sealing_ = f_.EVP_CIPHER_CTX_new();
    opening_ = f_.EVP_CIPHER_CTX_new();
    return sealing_ != nullptr && opening_ != nullptr &&
           f_.EVP_CipherInit_ex(sealing_, f_.EVP_aes_128_gcm(), nullptr, key.data(), nullptr, 1) ==
               1 &&
           f_.EVP_CipherInit_ex(opening_, f_.EVP_aes_128_gcm(), nullptr, key.data(), nullptr, 0) ==
               1;
  }

  bool seal(const GcmNonce& nonce, std::span<const uint8_t> header, std::span<const uint8_t> bytes,
            uint8_t last, uint8_t* out) override {
    uint8_t* const end = out + bytes.size();
    int none = 0;
    return f_.EVP_CipherInit_ex(sealing_, nullptr, nullptr, nullptr, nonce.data(), 1) == 1 &&
           pass(sealing_, nullptr, header) && pass(sealing_, out, bytes) &&
           pass(sealing_, end, {&last, 1}) &&
           f_.EVP_CipherFinal_ex(sealing_, end + 1, &none) == 1 &&
           f_.EVP_CIPHER_CTX_ctrl(sealing_, kGetTag, static_cast<int>(kGcmTagBytes), end + 1) == 1;
  }

  bool open(const GcmNonce& nonce, std::span<const uint8_t> header, std::span<const uint8_t> sealed,
            uint8_t* out, uint8_t& last) override {
    const size_t count = sealed.size() - kMoreBytes;
    uint8_t tag[kGcmTagBytes], rest[kGcmTagBytes];
    std::copy_n(sealed.data() + count + 1, kGcmTagBytes, tag);
    int none = 0;
    const bool is_good =
        f_.EVP_CipherInit_ex(opening_, nullptr, nullptr, nullptr, nonce.data(), 0) == 1 &&
        pass(opening_, nullptr, header) && pass(opening_, out, sealed.first(count)) &&
        pass(opening_, &last, sealed.subspan(count, 1)) &&
        f_.EVP_CIPHER_CTX_ctrl(opening_, kSetTag, static_cast<int>(kGcmTagBytes), tag) == 1 &&
        f_.EVP_CipherFinal_ex(opening_, rest, &none) == 1;
    if (!is_good) {
      wipe({out, count});
      last = 0;
    }
    return is_good;
  }

 private:
  bool pass(openssl::CipherContext* context, uint8_t* out, std::span<const uint8_t> in) const {
    int count = 0;
    return in.empty() ||
           f_.EVP_CipherUpdate(context, out, &count, in.data(), static_cast<int>(in.size())) == 1;
  }

  const openssl::Functions& f_;
  openssl::CipherContext* sealing_ = nullptr;
  openssl::CipherContext* opening_ = nullptr;
};

}  // namespace

std::unique_ptr<AesGcm> make_openssl_aes_gcm(const GcmKey& key) {
  const auto functions = openssl::load();
  if (!functions) return nullptr;
  auto cipher = std::make_unique<OpensslAesGcm>(**functions);
  if (!cipher->start(key)) return nullptr;
  return cipher;
}

std::unique_ptr<AesGcm> make_aes_gcm(const GcmKey& key) {
  auto cipher = make_vector_aes_gcm(key);
  return cipher != nullptr ? std::move(cipher) : make_openssl_aes_gcm(key);
}

}  // namespace hvd::net
