// tls_handshake.h - the first messages of TLS 1.3 over a socket, by OpenSSL 3 loaded at run time,
// with a pre-shared key and ephemeral ones. It ends with the two traffic secrets, and OpenSSL has
// read no byte behind its own. One thread at a time; never blocks.
#pragma once

#include <memory>
#include <optional>

#include "base/status.h"
#include "net/cipher/openssl.h"
#include "net/keys/key.h"

namespace hvd::net {

enum class TlsRole { kClient, kServer };  // the dialler is the client

// PRECONDITION_ERROR when OpenSSL 3 is not there. Any thread; reads files the first time.
Status load_tls();

class TlsHandshake {
 public:
  // The socket stays the caller's.
  static Result<std::unique_ptr<TlsHandshake>> create(int socket, const Key& key, TlsRole role);
  ~TlsHandshake();
  TlsHandshake(const TlsHandshake&) = delete;
  TlsHandshake& operator=(const TlsHandshake&) = delete;

  // Reads and writes what is possible now. PEER_LOST says why; the caller names the peer.
  Status advance();
  bool is_done() const { return is_done_; }
  // Of what this end sends, and of what it receives. Valid when done.
  const Key& send_secret() const { return role_ == TlsRole::kClient ? *client_ : *server_; }
  const Key& receive_secret() const { return role_ == TlsRole::kClient ? *server_ : *client_; }

  // For tests, in which OpenSSL goes on by itself.
  openssl::Ssl* ssl() const { return ssl_; }

 private:
  TlsHandshake(const openssl::Functions& functions, int socket, const Key& key, TlsRole role)
      : f_(functions), socket_(socket), key_(key), role_(role) {}
  Status begin();
  Status outcome(int result);
  openssl::Session* make_session() const;

  friend struct TlsCallbacks;  // what OpenSSL calls

  const openssl::Functions& f_;
  const int socket_;
  const Key key_;
  const TlsRole role_;
  openssl::Ssl* ssl_ = nullptr;
  bool is_done_ = false;
  std::optional<Key> client_, server_;
};

}  // namespace hvd::net
