// message.h - what travels on a control stream: a fixed header, then `bytes` of body. All hosts of
// a job have the same byte order (the handshake of the stream refuses others).
#pragma once

#include <cstdint>

namespace hvd::mirror {

enum class MessageKind : uint16_t {
  kHello = 1,    // HelloBody: the sender introduces itself
  kRecord,       // RecordBody and payload: record `index` of the sender's stream
  kMarks,        // log_seen, then low(sender, stream) of every member, uint32 each
  kLog,          // uint64: entry `index` of the decision log; from member 0
  kClosed,       // the sender takes no further part in the channel
  kAlive,        // AliveBody: heartbeat, and the last operation
  kLeaving,      // the sender has begun to shut down
  kLeft,         // the sender has shut down: the stream may end
  kFailure,      // FailureBody and text: the job has failed
  kWake,         // nobody drives rank `index` of the receiver's host: wake its background thread
  kStallSignal,  // rank `index` of the receiver's host was named in a stall report
};
inline constexpr uint16_t kLastKind = static_cast<uint16_t>(MessageKind::kStallSignal);

struct Header {
  uint32_t bytes;  // of the body
  uint16_t kind;
  uint16_t reserved;
  uint32_t channel;  // id and generation of the process set; 0 where it does not matter
  uint32_t index;
};
static_assert(sizeof(Header) == 16);

// A request message of a huge group; everything else is far smaller.
inline constexpr uint32_t kMaxBodyBytes = 64u << 20;

struct HelloBody {
  int32_t pid;
  int32_t stall_signal;
  char hostname[64];
};

struct RecordBody {
  uint32_t slot;
  uint32_t offset;  // in the eager ring
  uint32_t length;
  uint32_t flags;
  uint32_t view;
  uint32_t payload_bytes;  // that follow; 0 if the payload stays with its rank
};
static_assert(sizeof(RecordBody) == 24);

struct AliveBody {
  uint32_t heartbeat;
  int32_t stall_signal;
  uint32_t flight_number;  // of the last operation; 0: none
  uint8_t flight_kind, flight_state;
  uint16_t flight_channel;
  uint64_t flight_age_ns;  // since it was submitted
  uint64_t flight_took_ns;
  uint64_t flight_bytes;
  uint64_t flight_unnamed;
  uint32_t name_length;
  char name[80];
};

struct FailureBody {
  int32_t code;
  int32_t rank;
};

}  // namespace hvd::mirror
