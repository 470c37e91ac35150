#include "net/cipher/openssl.h"

#include <dlfcn.h>

#include <type_traits>

#include "base/text.h"

namespace hvd::net::openssl {
namespace {

struct Loaded {
  Functions functions{};
  Status status;
};

Loaded load_now() {
  Loaded out;
  void* library = dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    out.status = precondition_error(
        concat("HOROVOD_TLS needs OpenSSL 3 (libssl.so.3): ", why == nullptr ? "not found" : why));
    return out;
  }
  // Symbols of libcrypto are found through libssl, which depends on it.
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr && out.status.is_ok()) {
      out.status = precondition_error(concat("HOROVOD_TLS: libssl.so.3 has no ", name));
    }
  };
#define HVD_FIND(name) find(#name, out.functions.name)
  HVD_FIND(TLS_method);
  HVD_FIND(SSL_CTX_new);
  HVD_FIND(SSL_CTX_ctrl);
  HVD_FIND(SSL_CTX_set_ciphersuites);
  HVD_FIND(SSL_CTX_set_num_tickets);
  HVD_FIND(SSL_CTX_set_keylog_callback);
  HVD_FIND(SSL_CTX_set_psk_use_session_callback);
  HVD_FIND(SSL_CTX_set_psk_find_session_callback);
  HVD_FIND(SSL_new);
  HVD_FIND(SSL_free);
  HVD_FIND(SSL_set_bio);
  HVD_FIND(SSL_set_verify);
  HVD_FIND(SSL_set_connect_state);
  HVD_FIND(SSL_set_accept_state);
  HVD_FIND(SSL_set_ex_data);
  HVD_FIND(SSL_get_ex_data);
  HVD_FIND(SSL_do_handshake);
  HVD_FIND(SSL_get_error);
  HVD_FIND(SSL_CIPHER_find);
  HVD_FIND(SSL_SESSION_new);
  HVD_FIND(SSL_SESSION_free);
  HVD_FIND(SSL_SESSION_set1_master_key);
  HVD_FIND(SSL_SESSION_set_cipher);
  HVD_FIND(SSL_SESSION_set_protocol_version);
  HVD_FIND(BIO_meth_new);
  HVD_FIND(BIO_meth_set_write);
  HVD_FIND(BIO_meth_set_read);
  HVD_FIND(BIO_meth_set_ctrl);
  HVD_FIND(BIO_new);
  HVD_FIND(BIO_set_data);
  HVD_FIND(BIO_get_data);
  HVD_FIND(BIO_set_init);
  HVD_FIND(BIO_set_flags);
  HVD_FIND(BIO_clear_flags);
  HVD_FIND(EVP_CIPHER_CTX_new);
  HVD_FIND(EVP_CIPHER_CTX_free);
  HVD_FIND(EVP_CIPHER_CTX_ctrl);
  HVD_FIND(EVP_aes_128_gcm);
  HVD_FIND(EVP_CipherInit_ex);
  HVD_FIND(EVP_CipherUpdate);
  HVD_FIND(EVP_CipherFinal_ex);
  HVD_FIND(ERR_get_error);
  HVD_FIND(ERR_error_string_n);
  HVD_FIND(ERR_clear_error);
#undef HVD_FIND
  return out;
}

}  // namespace

Result<const Functions*> load() {
  static const Loaded loaded = load_now();
  if (!loaded.status) return loaded.status;
  return &loaded.functions;
}

}  // namespace hvd::net::openssl
