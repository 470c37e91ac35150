// hmac.h - HMAC-SHA-256 (RFC 2104) over a list of parts, and comparison in constant time.
// Any thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "net/cipher/sha256.h"
#include "net/cipher/wipe.h"

namespace hvd::net {

// The parts are taken as one text: callers make sure that only one division of it is possible
// (here: all parts but a literal label have fixed sizes).
Digest hmac_sha256(std::span<const uint8_t> key,
                   std::initializer_list<std::span<const uint8_t>> parts);

// Takes the same time wherever the first difference is.
bool equal_in_constant_time(std::span<const uint8_t> a, std::span<const uint8_t> b);

}  // namespace hvd::net
