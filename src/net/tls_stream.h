// tls_stream.h - a Stream under TLS 1.3, with OpenSSL 3 loaded at run time (HOROVOD_TLS=1). It
// starts after the handshake of handshake.h and takes the key of that session as its pre-shared
// key: no certificates, and no stranger ever talks to OpenSSL. Sending and receiving threads take
// turns, since one connection of OpenSSL serves one thread at a time.
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "base/status.h"
#include "net/key.h"
#include "net/stream.h"

namespace hvd::net {

enum class TlsRole { kClient, kServer };  // the dialler is the client

// PRECONDITION_ERROR when OpenSSL 3 is not there. Any thread; reads files the first time.
Status load_tls();

// The exchange of TLS's own first messages happens inside send() and receive().
Result<std::unique_ptr<Stream>> make_tls_stream(UniqueFd socket, std::string peer,
                                                const Key& session_key, TlsRole role);

}  // namespace hvd::net
