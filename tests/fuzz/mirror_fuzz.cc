// What a rank of another host may send on its control stream: the handshake is behind it, but a
// broken or foreign version of us must not break this host. Every input is applied or ends in an
// error; the board lies in memory that the sanitizer guards. An input is either the bytes of the
// stream, or a script from which messages with sensible heads are made, so that bodies are reached.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "mirror/mirror.h"

namespace {

using namespace hvd;
using mirror::MessageKind;

void require(bool condition) {
  if (!condition) std::abort();
}

// Bytes that have been received long ago; what is sent goes nowhere.
class ScriptedStream final : public net::Stream {
 public:
  ScriptedStream(std::span<const std::byte> bytes, size_t piece) : bytes_(bytes), piece_(piece) {}

  Result<size_t> send(std::span<const iovec> parts) override {
    size_t taken = 0;
    for (const iovec& part : parts) taken += part.iov_len;
    return taken;
  }
  Result<size_t> receive(std::span<const iovec> parts) override {
    const size_t count = std::min({parts[0].iov_len, bytes_.size(), piece_});
    if (count > 0) std::memcpy(parts[0].iov_base, bytes_.data(), count);
    bytes_ = bytes_.subspan(count);
    return count;
  }
  int descriptor() const override { return -1; }
  bool has_buffered() const override { return !bytes_.empty(); }
  const std::string& peer() const override { return peer_; }

 private:
  std::span<const std::byte> bytes_;
  const size_t piece_;
  const std::string peer_ = "rank 2 (host b)";
};

class ScriptedMesh final : public net::Mesh {
 public:
  explicit ScriptedMesh(std::unique_ptr<net::Stream> stream) : stream_(std::move(stream)) {}
  Result<std::unique_ptr<net::Stream>> connect(int32_t peer, uint64_t) override {
    require(peer == 2);
    return std::move(stream_);
  }
  void poll() override {}
  int descriptor() const override { return -1; }

 private:
  std::unique_ptr<net::Stream> stream_;
};

class Listener final : public mirror::MirrorHost {
 public:
  void peer_gone(int32_t rank, const Status& why) override { require(rank == 2 && !why.is_ok()); }
  void job_failed(int32_t rank, const Status& why) override {
    require(rank >= 0 && rank < 3 && !why.is_ok());
  }
  void stall_reported(int32_t rank) override { require(rank == 0 || rank == 1); }
};

// The next bytes of the input, zeros behind its end.
class Script {
 public:
  explicit Script(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  bool is_empty() const { return bytes_.empty(); }
  template <typename T>
  T next() {
    T value{};
    const auto body = take(sizeof value);
    std::memcpy(&value, body.data(), body.size());
    return value;
  }
  std::vector<std::byte> take(size_t count) {
    std::vector<std::byte> out(count);
    const size_t here = std::min(count, bytes_.size());
    if (here > 0) std::memcpy(out.data(), bytes_.data(), here);
    bytes_ = bytes_.subspan(here);
    return out;
  }

 private:
  std::span<const uint8_t> bytes_;
};

constexpr uint32_t kWireId = 7;
constexpr size_t kRanks = 3;

size_t usual_bytes(MessageKind kind, Script& script) {
  switch (kind) {
    case MessageKind::kHello:
      return sizeof(mirror::HelloBody);
    case MessageKind::kRecord:
      return sizeof(mirror::RecordBody) + script.next<uint8_t>();
    case MessageKind::kMarks:
      return (kRanks + 1) * sizeof(uint32_t);
    case MessageKind::kLog:
      return sizeof(uint64_t);
    case MessageKind::kAlive:
      return sizeof(mirror::AliveBody);
    case MessageKind::kFailure:
      return sizeof(mirror::FailureBody) + script.next<uint8_t>();
    default:
      return 0;
  }
}

// One message: its kind, bits that say which of its head's fields are unusual, its body.
void add_message(Script& script, uint32_t& records, uint32_t& decisions,
                 std::vector<std::byte>& out) {
  mirror::Header header{};
  header.kind = static_cast<uint16_t>(script.next<uint8_t>() % (mirror::kLastKind + 1));
  const auto unusual = script.next<uint8_t>();
  const auto kind = static_cast<MessageKind>(header.kind);
  header.channel = (unusual & 1) != 0 ? script.next<uint16_t>() : kWireId;
  if (kind == MessageKind::kRecord) header.index = records++;
  if (kind == MessageKind::kLog) header.index = decisions++;
  if ((unusual & 2) != 0) header.index = script.next<uint32_t>();
  const size_t bytes = (unusual & 4) != 0 ? script.next<uint16_t>() : usual_bytes(kind, script);
  std::vector<std::byte> body = script.take(bytes);
  if (kind == MessageKind::kRecord && (unusual & 8) == 0 &&
      body.size() >= sizeof(mirror::RecordBody)) {
    // A length that fits.
    const auto payload = static_cast<uint32_t>(body.size() - sizeof(mirror::RecordBody));
    std::memcpy(body.data() + offsetof(mirror::RecordBody, length), &payload, sizeof payload);
    std::memcpy(body.data() + offsetof(mirror::RecordBody, payload_bytes), &payload,
                sizeof payload);
  }
  header.bytes = static_cast<uint32_t>(body.size());
  const auto* first = reinterpret_cast<const std::byte*>(&header);
  out.insert(out.end(), first, first + sizeof header);
  out.insert(out.end(), body.begin(), body.end());
}

std::vector<std::byte> stream_of(Script script) {
  std::vector<std::byte> out;
  uint32_t records = 0, decisions = 0;
  while (!script.is_empty() && out.size() < (1u << 20))
    add_message(script, records, decisions, out);
  return out;
}

void mirror_stream(std::span<const std::byte> bytes, size_t piece) {
  // Ranks 0 and 1 are here, rank 2 on the other host; this is rank 0, which gets its messages.
  auto jobs = shm::Job::in_process(
      kRanks, {.here = {0, 1}, .job_id = "fuzz", .hostname = "a", .arena_bytes = 64 << 10});
  require(jobs.is_ok());
  const topology::HostMap hosts{{0, 0, 1}, {{0, 1}, {2}}, {"a", "b"}};
  const std::unique_ptr<std::byte[], decltype(&std::free)> region(
      static_cast<std::byte*>(
          std::aligned_alloc(4096, align_up(control::Board::region_bytes(kRanks), size_t{4096}))),
      &std::free);
  std::memset(region.get(), 0, control::Board::region_bytes(kRanks));
  ScriptedMesh mesh(std::make_unique<ScriptedStream>(bytes, piece));
  Listener listener;
  mirror::Mirror mirror(*(*jobs)[0], hosts, mesh, listener);
  // Of a set that this rank opens late, messages are kept until then.
  const auto open = [&](uint32_t id) {
    mirror.open({.id = id,
                 .wire_id = id,
                 .board = control::Board(region.get(), kRanks),
                 .me = 0,
                 .members = {{0, 1, 2}, {0, 0, 1}}});
  };
  open(kWireId);
  while (mirror.pump()) {
  }
  open(kWireId + 1);
  mirror.say_alive();
  (void)mirror.meet(Deadline::after(Nanoseconds(0))).is_ok();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::span<const uint8_t> rest(data + 2, size - 2);
  const size_t piece = data[1] == 0 ? SIZE_MAX : data[1];
  if (data[0] % 4 == 0) {
    mirror_stream(std::as_bytes(rest), piece);
  } else {
    const std::vector<std::byte> bytes = stream_of(Script(rest));
    mirror_stream(bytes, piece);
  }
  return 0;
}
