#include "elastic/message.h"

#include <algorithm>

#include "base/interrupt.h"
#include "base/text.h"
#include "net/packing.h"

namespace hvd::elastic {
namespace {

using net::put;
using net::put_text;
using net::Unpacker;

enum class Kind : uint8_t {
  kReady = 1,
  kReport = 2,
  kAssign = 16,
  kRemoved = 17,
  kBroken = 18,
  kNews = 19,
  kLeave = 20,
};

constexpr uint32_t kAllChanges = 3;
constexpr int32_t kMaxReportKind = kReportDone;

std::string begin(Kind kind) {
  std::string out;
  put(out, static_cast<uint8_t>(kind));
  return out;
}

std::string_view cut(std::string_view reason) { return reason.substr(0, kMaxReasonBytes); }

std::string write(const Ready& message) {
  std::string out = begin(Kind::kReady);
  put(out, message.epoch);
  put_text(out, cut(message.why));
  const size_t count = std::min(message.missed.size(), kMaxMissed);
  put(out, static_cast<uint32_t>(count));
  for (size_t i = 0; i < count; ++i) put(out, message.missed[i]);
  return out;
}

std::string write(const Report& message) {
  std::string out = begin(Kind::kReport);
  put(out, message.kind);
  put(out, message.number);
  return out;
}

std::string write(const Assign& message) {
  std::string out = begin(Kind::kAssign);
  put(out, message.epoch);
  for (int32_t number : {message.rank, message.size, message.local_rank, message.local_size,
                         message.cross_rank, message.cross_size}) {
    put(out, number);
  }
  return out;
}

std::string write(const Removed& message) {
  std::string out = begin(Kind::kRemoved);
  put_text(out, cut(message.reason));
  return out;
}

std::string write(const Broken& message) {
  std::string out = begin(Kind::kBroken);
  put(out, message.epoch);
  put_text(out, cut(message.reason));
  return out;
}

std::string write(const News& message) {
  std::string out = begin(Kind::kNews);
  put(out, message.timestamp_ns);
  put(out, message.changes);
  return out;
}

std::string write(const Leave&) { return begin(Kind::kLeave); }

Assign read_assign(Unpacker& in) {
  Assign message;
  message.epoch = in.get<uint64_t>();
  for (int32_t* number : {&message.rank, &message.size, &message.local_rank, &message.local_size,
                          &message.cross_rank, &message.cross_size}) {
    *number = in.get<int32_t>();
  }
  return message;
}

// False: more than anybody sends, or ranks that no world has.
bool read_missed(Unpacker& in, std::vector<int32_t>& out) {
  const auto count = in.get<uint32_t>();
  if (count > kMaxMissed) return false;
  for (uint32_t i = 0; i < count; ++i) out.push_back(in.get<int32_t>());
  return std::all_of(out.begin(), out.end(), [](int32_t rank) { return rank >= kStorePeer; });
}

bool is_part(int32_t place, int32_t count, int32_t most) {
  return place >= 0 && place < count && count <= most;
}

// Bounds that the topology of any world keeps.
bool is_sane(const Assign& message) {
  return message.epoch > 0 && is_part(message.rank, message.size, INT32_MAX) &&
         is_part(message.local_rank, message.local_size, message.size) &&
         is_part(message.cross_rank, message.cross_size, message.size);
}

Status damaged(std::string_view who, std::string_view bytes) {
  return corrupted(
      concat("elastic: a message of ", bytes.size(), " bytes from the ", who, " is damaged"));
}

}  // namespace

std::string encode(const ToLauncher& message) {
  return std::visit([](const auto& m) { return write(m); }, message);
}

std::string encode(const ToWorker& message) {
  return std::visit([](const auto& m) { return write(m); }, message);
}

Result<ToLauncher> decode_to_launcher(std::string_view bytes) {
  if (bytes.size() > kMaxMessageBytes) return damaged("worker", bytes);
  Unpacker in(bytes);
  switch (static_cast<Kind>(in.get<uint8_t>())) {
    case Kind::kReady: {
      Ready message{.epoch = in.get<uint64_t>()};
      message.why = in.get_text();
      const bool is_sound = read_missed(in, message.missed) && in.is_complete();
      if (is_sound && message.why.size() <= kMaxReasonBytes) return ToLauncher(message);
      break;
    }
    case Kind::kReport: {
      Report message{.kind = in.get<int32_t>()};
      message.number = in.get<int64_t>();
      if (in.is_complete() && message.kind > 0 && message.kind <= kMaxReportKind) {
        return ToLauncher(message);
      }
      break;
    }
    default:
      break;
  }
  return damaged("worker", bytes);
}

Result<ToWorker> decode_to_worker(std::string_view bytes) {
  if (bytes.size() > kMaxMessageBytes) return damaged("launcher", bytes);
  Unpacker in(bytes);
  switch (static_cast<Kind>(in.get<uint8_t>())) {
    case Kind::kAssign: {
      const Assign message = read_assign(in);
      if (in.is_complete() && is_sane(message)) return ToWorker(message);
      break;
    }
    case Kind::kRemoved: {
      Removed message{.reason = std::string(in.get_text())};
      if (in.is_complete() && message.reason.size() <= kMaxReasonBytes) return ToWorker(message);
      break;
    }
    case Kind::kBroken: {
      Broken message{.epoch = in.get<uint64_t>()};
      message.reason = in.get_text();
      if (in.is_complete() && message.reason.size() <= kMaxReasonBytes) return ToWorker(message);
      break;
    }
    case Kind::kNews: {
      News message{.timestamp_ns = in.get<int64_t>()};
      message.changes = in.get<uint32_t>();
      if (in.is_complete() && message.changes <= kAllChanges) return ToWorker(message);
      break;
    }
    case Kind::kLeave:
      if (in.is_complete()) return ToWorker(Leave{});
      break;
    default:
      break;
  }
  return damaged("launcher", bytes);
}

}  // namespace hvd::elastic
