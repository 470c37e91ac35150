// sealed_stream.h - a Stream over a connected socket in records that nobody can read or change
// without the key of the connection: for the store always, and for streams between ranks where one
// end has no OpenSSL. Threads as in stream.h; never blocks.
//
// A record is its length (32 bits), that many encrypted bytes, and a tag over length, bytes, the
// direction and the number of the record. So a record that was changed, repeated, left out or moved
// is CORRUPTED, and nothing of it is given out. That the last ones were left out shows as the end
// of the stream, which is an error, too.
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "net/keys/key.h"
#include "net/stream.h"

namespace hvd::net {

inline constexpr size_t kSealedRecordBytes = 16 << 10;  // at most

// Which end of the connection this is: each direction has a key of its own.
enum class SealRole { kDialler, kAcceptor };

std::unique_ptr<Stream> make_sealed_stream(UniqueFd socket, std::string peer,
                                           const Key& session_key, SealRole role);

}  // namespace hvd::net
