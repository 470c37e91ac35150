// protocol.h - requests and answers between client and server of a store. A frame is its length (32
// bits) and that many bytes. Request: kind, key (counted), value (the rest; only with kSet).
// Answer: outcome, value or text of the error. One request at a time per connection. Pure; any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/packing.h"

namespace hvd::store {

enum class Kind : uint8_t { kSet = 1, kGet = 2 };
enum class Outcome : uint8_t { kOk = 0, kOtherValue = 1, kNoRoom = 2, kBadRequest = 3 };

inline constexpr size_t kMostKeyBytes = 1024;
inline constexpr size_t kMostValueBytes = 32u << 20;  // the roster of 100000 ranks
inline constexpr size_t kMostFrameBytes = kMostValueBytes + kMostKeyBytes + 16;
inline constexpr uint64_t kStorePurpose = 0x65726f7473;  // "store"

inline std::string frame_of(std::string_view body) {
  std::string frame;
  net::put_text(frame, body);
  return frame;
}

inline std::string request_of(Kind kind, std::string_view key, std::string_view value = {}) {
  std::string body;
  net::put(body, static_cast<uint8_t>(kind));
  net::put_text(body, key);
  body += value;
  return frame_of(body);
}

inline std::string answer_of(Outcome outcome, std::string_view value = {}) {
  std::string body;
  net::put(body, static_cast<uint8_t>(outcome));
  body += value;
  return frame_of(body);
}

}  // namespace hvd::store
