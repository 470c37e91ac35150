// openssl.h - the functions of OpenSSL 3 that TLS needs, found at run time. Declared here,
// because neither building nor running the library may depend on OpenSSL. Any thread.
#pragma once

#include <cstddef>

#include "base/status.h"

namespace hvd::net::openssl {

// Opaque types of OpenSSL.
struct Ssl;
struct Context;
struct Session;
struct Method;
struct Bio;
struct BioMethod;
struct CipherContext;

using UseSession = int (*)(Ssl*, const void* digest, const unsigned char** identity,
                           size_t* identity_bytes, Session** out);
using FindSession = int (*)(Ssl*, const unsigned char* identity, size_t identity_bytes,
                            Session** out);

// A line of the form "LABEL RANDOM SECRET", the last two in hexadecimal digits.
using KeyLog = void (*)(const Ssl*, const char* line);

struct Functions {
  const Method* (*TLS_method)();
  Context* (*SSL_CTX_new)(const Method*);
  long (*SSL_CTX_ctrl)(Context*, int command, long number, void* pointer);
  int (*SSL_CTX_set_ciphersuites)(Context*, const char*);
  int (*SSL_CTX_set_num_tickets)(Context*, size_t);
  void (*SSL_CTX_set_keylog_callback)(Context*, KeyLog);
  void (*SSL_CTX_set_psk_use_session_callback)(Context*, UseSession);
  void (*SSL_CTX_set_psk_find_session_callback)(Context*, FindSession);
  Ssl* (*SSL_new)(Context*);
  void (*SSL_free)(Ssl*);
  void (*SSL_set_bio)(Ssl*, Bio* reading, Bio* writing);
  void (*SSL_set_verify)(Ssl*, int mode, void* callback);
  void (*SSL_set_connect_state)(Ssl*);
  void (*SSL_set_accept_state)(Ssl*);
  int (*SSL_set_ex_data)(Ssl*, int index, void*);
  void* (*SSL_get_ex_data)(const Ssl*, int index);
  int (*SSL_do_handshake)(Ssl*);
  int (*SSL_get_error)(const Ssl*, int result);
  const void* (*SSL_CIPHER_find)(Ssl*, const unsigned char* two_bytes);
  Session* (*SSL_SESSION_new)();
  void (*SSL_SESSION_free)(Session*);
  int (*SSL_SESSION_set1_master_key)(Session*, const unsigned char*, size_t);
  int (*SSL_SESSION_set_cipher)(Session*, const void* cipher);
  int (*SSL_SESSION_set_protocol_version)(Session*, int);
  BioMethod* (*BIO_meth_new)(int type, const char* name);
  int (*BIO_meth_set_write)(BioMethod*, int (*)(Bio*, const char*, int));
  int (*BIO_meth_set_read)(BioMethod*, int (*)(Bio*, char*, int));
  int (*BIO_meth_set_ctrl)(BioMethod*, long (*)(Bio*, int, long, void*));
  Bio* (*BIO_new)(const BioMethod*);
  void (*BIO_set_data)(Bio*, void*);
  void* (*BIO_get_data)(Bio*);
  void (*BIO_set_init)(Bio*, int);
  void (*BIO_set_flags)(Bio*, int);
  void (*BIO_clear_flags)(Bio*, int);
  CipherContext* (*EVP_CIPHER_CTX_new)();
  void (*EVP_CIPHER_CTX_free)(CipherContext*);
  int (*EVP_CIPHER_CTX_ctrl)(CipherContext*, int command, int number, void*);
  const void* (*EVP_aes_128_gcm)();
  int (*EVP_CipherInit_ex)(CipherContext*, const void* cipher, void* engine,
                           const unsigned char* key, const unsigned char* nonce, int encrypts);
  int (*EVP_CipherUpdate)(CipherContext*, unsigned char* out, int* out_bytes,
                          const unsigned char* in, int in_bytes);
  int (*EVP_CipherFinal_ex)(CipherContext*, unsigned char* out, int* out_bytes);
  unsigned long (*ERR_get_error)();
  void (*ERR_error_string_n)(unsigned long, char*, size_t);
  void (*ERR_clear_error)();
};

// Loads libssl.so.3 the first time. The library stays loaded.
Result<const Functions*> load();

}  // namespace hvd::net::openssl
