// join_message.h - what a host that joins a running job and its launcher say to each other, in the
// frames of agent_message.h, over a stream that both ends have proven the key of the user for.
// Pure; any thread.
//
//   host     -> launcher: kJoin, later perhaps kLeave
//   launcher -> host:     kJoined or kRefused, then kOpen for every agent that is wanted, then kEnd
//
// For each kOpen the host dials once more, and that connection is the agent's (joined_hosts.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace hvd::launch {

// What a connection is for, in its handshake. Of an agent's, the epoch is the number of kOpen.
inline constexpr uint64_t kJoinPurpose = 0x6a6f'696e;
inline constexpr uint64_t kAgentPurpose = 0x6167'656e'74;

// A key file may serve many jobs and other purposes.
inline constexpr char kJoinKeyLabel[] = "horovod join";

struct JoinMessage {
  std::string version;
  std::string hostname;
  int32_t slots = 0;
};

// The job is over for this host.
struct EndMessage {
  int32_t exit_code = 0;  // of the job
  std::string text;
};

std::string encode(const JoinMessage& message);
std::string encode(const EndMessage& message);
Result<JoinMessage> decode_join(std::string_view payload);
Result<EndMessage> decode_end(std::string_view payload);

}  // namespace hvd::launch
