// tls_stream.h - a Stream under TLS 1.3, with OpenSSL 3 loaded at run time. It starts after the
// handshake of handshake.h and takes the key of that session as its pre-shared key: no
// certificates, and no stranger ever talks to OpenSSL. Sending and receiving threads take turns,
// since one connection of OpenSSL serves one thread at a time.
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "base/status.h"
#include "net/key.h"
#include "net/stream.h"

namespace hvd::net {

enum class TlsRole { kClient, kServer };  // the dialler is the client

struct TlsOptions {
  // A third of what RFC 8446, 5.5 allows for AES-GCM; 128 GiB in full records.
  uint64_t records_per_key = uint64_t{1} << 23;
};

// PRECONDITION_ERROR when OpenSSL 3 is not there. Any thread; reads files the first time.
Status load_tls();

// The exchange of TLS's own first messages happens inside send() and receive(). What nobody at the
// other end can have written is CORRUPTED, and nothing of it is given out.
Result<std::unique_ptr<Stream>> make_tls_stream(UniqueFd socket, std::string peer,
                                                const Key& session_key, TlsRole role,
                                                const TlsOptions& options = {});

}  // namespace hvd::net
