// tls_stream.h - a Stream under TLS 1.3. It starts after the handshake of handshake.h and takes the
// key of that session as its pre-shared key: no certificates, and no stranger ever talks to
// OpenSSL. TLS's own first messages are OpenSSL's (tls_handshake.h), the records behind them ours
// (tls_records.h). Threads as in stream.h; never blocks.
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "base/status.h"
#include "net/keys/key.h"
#include "net/stream.h"
#include "net/tls_handshake.h"

namespace hvd::net {

struct TlsOptions {
  // A third of what RFC 8446, 5.5 allows for AES-GCM; 128 GiB in full records.
  uint64_t records_per_key = uint64_t{1} << 23;
};

// The exchange of TLS's own first messages happens inside send() and receive(). What nobody at the
// other end can have written is CORRUPTED, and nothing of it is given out.
Result<std::unique_ptr<Stream>> make_tls_stream(UniqueFd socket, std::string peer,
                                                const Key& session_key, TlsRole role,
                                                const TlsOptions& options = {});

}  // namespace hvd::net
