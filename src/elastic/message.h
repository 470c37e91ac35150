// message.h - what a worker of an elastic job and its launcher say to each other. One message is
// one packet of a socket pair, so there are no frames to cut; nothing that comes is believed: sizes
// are bounded and every message is checked as a whole. Pure; any thread.
//
//   worker                      launcher
//   Ready{epoch it was in} -->            wants to be in the next world
//                          <-- Assign     its place there
//                          <-- Removed    or none: it should end with code 0
//                          <-- Broken     that world lost somebody: whoever still waits for its
//                                         peers in init comes back with Ready
//                          <-- News       hosts have come or go; the training asks when it likes
//                          <-- Leave      finish the step and go
//   Report                 -->
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"

namespace hvd::elastic {

inline constexpr size_t kMaxMessageBytes = 4096;
inline constexpr size_t kMaxReasonBytes = 1024;  // longer ones are cut
inline constexpr size_t kMaxMissed = 256;        // more are left out

// Names the worker's end of the socket pair: a number.
inline constexpr char kChannelVariable[] = "HOROVOD_ELASTIC_FD";

struct Ready {
  uint64_t epoch = 0;    // that it was in last; 0: it has just been started
  std::string why = {};  // it came back; empty: a first start, or the program's own wish
  // Ranks of that epoch that it could not reach while they met; kStorePeer: not even the place
  // where all meet.
  std::vector<int32_t> missed = {};
  bool operator==(const Ready&) const = default;
};

// Of hvd_elastic_report_kind.
inline constexpr int32_t kReportCommitted = 1;
inline constexpr int32_t kReportLeaving = 2;
inline constexpr int32_t kReportDone = 3;

struct Report {
  int32_t kind = 0;
  int64_t number = 0;
  bool operator==(const Report&) const = default;
};

struct Assign {
  uint64_t epoch = 0;
  int32_t rank = 0, size = 1;
  int32_t local_rank = 0, local_size = 1;
  int32_t cross_rank = 0, cross_size = 1;
  bool operator==(const Assign&) const = default;
};

struct Removed {
  std::string reason = {};
  bool operator==(const Removed&) const = default;
};

struct Broken {
  uint64_t epoch = 0;
  std::string reason = {};
  bool operator==(const Broken&) const = default;
};

struct News {
  int64_t timestamp_ns = 0;  // 0: what was said before is not so any more
  uint32_t changes = 0;
  bool operator==(const News&) const = default;
};

struct Leave {
  bool operator==(const Leave&) const = default;
};

using ToLauncher = std::variant<Ready, Report>;
using ToWorker = std::variant<Assign, Removed, Broken, News, Leave>;

std::string encode(const ToLauncher& message);
std::string encode(const ToWorker& message);
Result<ToLauncher> decode_to_launcher(std::string_view bytes);
Result<ToWorker> decode_to_worker(std::string_view bytes);

}  // namespace hvd::elastic
