// agent_message.h - what launcher and agent say to each other over the standard streams of ssh.
// A frame is its length (32 bits, little endian), one byte of kind, the payload. ssh vouches for
// both ends and for secrecy, but nothing that comes is believed: lengths are bounded, and every
// payload is checked as a whole. Pure; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "launch/os/environment_list.h"
#include "launch/ranks/worker_events.h"

namespace hvd::launch {

// The agent's first bytes. Whatever a login shell prints before them is skipped.
inline constexpr std::string_view kAgentMagic{"\0horovod-agent-1\n", 17};
inline constexpr size_t kMaxNoiseBytes = size_t{64} << 10;

inline constexpr size_t kMaxFrameBytes = size_t{64} << 20;     // environments and commands are long
inline constexpr size_t kInputWindowBytes = size_t{64} << 10;  // of rank 0's input, on its way

inline constexpr std::chrono::seconds kHeartbeatPeriod{1};
// Whoever has sent no heartbeat for so long has not looked for those of others either.
inline constexpr std::chrono::seconds kAwayTime = 3 * kHeartbeatPeriod;

enum class FrameKind : uint8_t {
  // launcher -> agent
  kStart = 1,    // what to start; nothing runs before kGo
  kGo = 2,       // every host is ready
  kSignal = 3,   // an AgentSignal for all ranks
  kInput = 4,    // for rank 0; empty: the end
  kInquire = 5,  // doctor: what is this host like?
  kProbe = 6,    // doctor: how do you reach that host?
  kKillOne = 7,  // a worker of an elastic job: its number
  // launcher -> a host that joins (join_message.h)
  kJoined = 16,   // a text
  kRefused = 17,  // a text
  kOpen = 18,     // a number: dial again, for an agent
  kEnd = 19,
  // agent -> launcher
  kHello = 32,
  kReady = 33,
  kProblem = 34,
  kStarted = 35,
  kOutput = 36,
  kOutputEnd = 37,
  kExit = 38,
  kInputTaken = 39,
  kGone = 40,  // no process is left; the last frame
  kFacts = 41,
  kProbed = 42,
  kFile = 43,  // what a rank of horovod.run left; before kGone
  // a host that joins -> launcher
  kJoin = 48,
  kLeave = 49,  // no new workers, and those that run may finish their step
  // both ways
  kHeartbeat = 64,
  kMessage = 65,  // of or for an elastic worker: its number, then elastic/message.h
};

enum class AgentSignal : uint8_t { kTerminate = 1, kKill = 2, kStop = 3, kContinue = 4 };

struct Frame {
  FrameKind kind;
  std::string payload;
};

std::string encode_frame(FrameKind kind, std::string_view payload);

// Cuts a stream into frames. One thread.
class FrameReader {
 public:
  // `skip_noise`: everything before kAgentMagic.
  explicit FrameReader(bool skip_noise) : in_noise_(skip_noise) {}

  void append(std::string_view bytes) { buffer_ += bytes; }
  // None: not all of it is there yet. An error stays.
  Result<std::optional<Frame>> next();
  // What came instead of a greeting.
  const std::string& noise() const { return noise_; }

 private:
  Status skip_noise();

  std::string buffer_;
  size_t done_ = 0;  // of buffer_
  bool in_noise_;
  std::string noise_;
};

struct HelloMessage {
  std::string version;
  std::string hostname;
};

struct StartMessage {
  std::string key;
  std::string working_directory;
  std::vector<std::string> command;
  EnvironmentList environment;  // of all ranks
  struct Rank {
    int32_t rank = 0;
    EnvironmentList variables;  // of this one
  };
  std::vector<Rank> ranks;
  std::chrono::nanoseconds termination_grace{};
  std::string function;  // of horovod.run, for a folder on that host; empty: none
  bool is_elastic = false;
};

struct ProblemMessage {
  int32_t exit_code = 0;
  std::string text;
};

struct OutputMessage {
  int32_t rank = 0;
  OutputStream stream = OutputStream::kOut;
  std::string_view bytes;  // of the payload
};

struct ElasticMessage {
  int32_t worker = 0;
  std::string_view bytes;  // of the payload
};

struct StartedMessage {
  int32_t rank = 0;
  int32_t pid = 0;
};

// A doctor's questions; the answers are in doctor_facts.h and doctor_probe.h.
struct Inquiry {
  std::string key;
  std::vector<std::string> interfaces;  // empty: all
};
struct ProbeOrder {
  std::string host;  // for messages
  std::string addresses;
};

std::string encode(const Inquiry& message);
std::string encode(const ProbeOrder& message);
Result<Inquiry> decode_inquiry(std::string_view payload);
Result<ProbeOrder> decode_probe_order(std::string_view payload);

std::string encode(const HelloMessage& message);
std::string encode(const StartMessage& message);
std::string encode(const ProblemMessage& message);
std::string encode(const OutputMessage& message);
std::string encode(const ElasticMessage& message);
std::string encode(const StartedMessage& message);
std::string encode(const WorkerExit& message);
std::string encode(const FilePiece& message);
std::string encode_number(uint32_t number);

Result<HelloMessage> decode_hello(std::string_view payload);
Result<StartMessage> decode_start(std::string_view payload);
Result<ProblemMessage> decode_problem(std::string_view payload);
Result<OutputMessage> decode_output(std::string_view payload);
Result<ElasticMessage> decode_message(std::string_view payload);
Result<StartedMessage> decode_started(std::string_view payload);
Result<WorkerExit> decode_exit(std::string_view payload);
Result<FilePiece> decode_file(std::string_view payload);  // views into the payload
Result<uint32_t> decode_number(std::string_view payload);

}  // namespace hvd::launch
