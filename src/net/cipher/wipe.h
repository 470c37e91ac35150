// wipe.h - forgetting secrets. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hvd::net {

// A store that the compiler must not leave out.
inline void wipe(std::span<uint8_t> bytes) {
  volatile uint8_t* at = bytes.data();
  for (size_t i = 0; i < bytes.size(); ++i) at[i] = 0;
}

}  // namespace hvd::net
