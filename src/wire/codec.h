// codec.h - requests as bytes and back. No I/O, no struct casts; little endian, lengths checked
// against limits.h before anything is allocated. Decoding any byte string ends with a value or a
// Status.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"
#include "wire/request.h"

namespace hvd::wire {

// What encode() will need; a request over kMaxMessageBytes is refused by its own rank.
size_t encoded_bytes(const Request& request);
// The request respects limits.h, or decode() refuses it. Equal requests give equal bytes.
std::vector<std::byte> encode(const Request& request);
// CORRUPTED, with field, offset, expected and got, unless `message` is exactly one request. What
// the request asks for is not judged here: that is validate_local().
Result<Request> decode(std::span<const std::byte> message);

}  // namespace hvd::wire
