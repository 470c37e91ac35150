#include "launch/link/agent_message.h"

#include "base/text.h"
#include "elastic/message.h"
#include "launch/options/options.h"
#include "net/packing.h"

namespace hvd::launch {
namespace {

using net::put;
using net::put_text;
using net::Unpacker;

constexpr size_t kHeaderBytes = 5;

void put_list(std::string& out, const std::vector<std::string>& texts) {
  put(out, static_cast<uint32_t>(texts.size()));
  for (const std::string& text : texts) put_text(out, text);
}

std::vector<std::string> get_list(Unpacker& in) {
  std::vector<std::string> texts;
  const auto count = in.get<uint32_t>();
  // Stops at the end of the bytes, however large the count.
  for (uint32_t i = 0; i < count && in.is_good(); ++i) texts.emplace_back(in.get_text());
  return texts;
}

template <typename T>
Result<T> checked(const Unpacker& in, T message, const char* what) {
  if (!in.is_complete()) return corrupted(concat("the ", what, " message is damaged"));
  return message;
}

}  // namespace

std::string encode_frame(FrameKind kind, std::string_view payload) {
  std::string out;
  out.reserve(kHeaderBytes + payload.size());
  put(out, static_cast<uint32_t>(payload.size()));
  put(out, static_cast<uint8_t>(kind));
  out += payload;
  return out;
}

Status FrameReader::skip_noise() {
  const size_t at = buffer_.find(kAgentMagic);
  if (at == std::string::npos) {
    noise_ = buffer_.substr(0, std::min(buffer_.size(), kMaxNoiseBytes));
    if (buffer_.size() <= kMaxNoiseBytes) return Status::ok();
    return corrupted("something else than horovodrun answers");
  }
  noise_ = buffer_.substr(0, at);
  done_ = at + kAgentMagic.size();
  in_noise_ = false;
  return Status::ok();
}

Result<std::optional<Frame>> FrameReader::next() {
  if (in_noise_) HVD_TRY(skip_noise());
  if (in_noise_) return std::optional<Frame>();
  const std::string_view rest = std::string_view(buffer_).substr(done_);
  Unpacker header(rest);
  const auto size = header.get<uint32_t>();
  const auto kind = header.get<uint8_t>();
  if (!header.is_good()) return std::optional<Frame>();
  if (size > kMaxFrameBytes) return corrupted(concat("a message of ", size, " bytes is too long"));
  if (header.rest().size() < size) return std::optional<Frame>();
  Frame frame{.kind = static_cast<FrameKind>(kind),
              .payload = std::string(header.rest().substr(0, size))};
  done_ += kHeaderBytes + size;
  // Moves the rest to the front only when that is less work than what has been read.
  if (done_ > buffer_.size() / 2) {
    buffer_.erase(0, done_);
    done_ = 0;
  }
  return std::optional(std::move(frame));
}

std::string encode(const HelloMessage& message) {
  std::string out;
  put_text(out, message.version);
  put_text(out, message.hostname);
  return out;
}

Result<HelloMessage> decode_hello(std::string_view payload) {
  Unpacker in(payload);
  HelloMessage message;
  message.version = in.get_text();
  message.hostname = in.get_text();
  return checked(in, std::move(message), "greeting");
}

std::string encode(const StartMessage& message) {
  std::string out;
  put_text(out, message.key);
  put_text(out, message.working_directory);
  put_list(out, message.command);
  put_list(out, message.environment);
  put(out, static_cast<uint32_t>(message.ranks.size()));
  for (const StartMessage::Rank& rank : message.ranks) {
    put(out, rank.rank);
    put_list(out, rank.variables);
  }
  put(out, static_cast<int64_t>(message.termination_grace.count()));
  put_text(out, message.function);
  put(out, static_cast<uint8_t>(message.is_elastic ? 1 : 0));
  return out;
}

Result<StartMessage> decode_start(std::string_view payload) {
  Unpacker in(payload);
  StartMessage message;
  message.key = in.get_text();
  message.working_directory = in.get_text();
  message.command = get_list(in);
  message.environment = get_list(in);
  const auto count = in.get<uint32_t>();
  for (uint32_t i = 0; i < count && in.is_good(); ++i) {
    StartMessage::Rank rank;
    rank.rank = in.get<int32_t>();
    rank.variables = get_list(in);
    message.ranks.push_back(std::move(rank));
  }
  message.termination_grace = std::chrono::nanoseconds(in.get<int64_t>());
  message.function = in.get_text();
  const auto is_elastic = in.get<uint8_t>();
  if (is_elastic > 1) return corrupted("the start message is damaged");  // one encoding for each
  message.is_elastic = is_elastic == 1;
  if (in.is_good() && (message.command.empty() || message.ranks.empty() ||
                       message.ranks.size() > size_t{kMaxWorkers})) {
    return corrupted("the start message names no command or no ranks");
  }
  return checked(in, std::move(message), "start");
}

std::string encode(const ProblemMessage& message) {
  std::string out;
  put(out, message.exit_code);
  put_text(out, message.text);
  return out;
}

Result<ProblemMessage> decode_problem(std::string_view payload) {
  Unpacker in(payload);
  ProblemMessage message;
  message.exit_code = in.get<int32_t>();
  message.text = in.get_text();
  return checked(in, std::move(message), "problem");
}

std::string encode(const OutputMessage& message) {
  std::string out;
  put(out, message.rank);
  put(out, static_cast<uint8_t>(message.stream));
  out += message.bytes;
  return out;
}

Result<OutputMessage> decode_output(std::string_view payload) {
  Unpacker in(payload);
  OutputMessage message;
  message.rank = in.get<int32_t>();
  message.stream = in.get<uint8_t>() == 0 ? OutputStream::kOut : OutputStream::kErr;
  message.bytes = in.rest();
  if (!in.is_good()) return corrupted("the output message is damaged");
  return message;
}

std::string encode(const ElasticMessage& message) {
  std::string out;
  put(out, message.worker);
  out += message.bytes;
  return out;
}

Result<ElasticMessage> decode_message(std::string_view payload) {
  Unpacker in(payload);
  ElasticMessage message{.worker = in.get<int32_t>(), .bytes = in.rest()};
  if (!in.is_good() || message.bytes.size() > elastic::kMaxMessageBytes) {
    return corrupted("the message of an elastic worker is damaged");
  }
  return message;
}

std::string encode(const StartedMessage& message) {
  std::string out;
  put(out, message.rank);
  put(out, message.pid);
  return out;
}

Result<StartedMessage> decode_started(std::string_view payload) {
  Unpacker in(payload);
  StartedMessage message;
  message.rank = in.get<int32_t>();
  message.pid = in.get<int32_t>();
  return checked(in, message, "started");
}

std::string encode(const WorkerExit& message) {
  std::string out;
  put(out, message.rank);
  put(out, static_cast<int32_t>(message.status.code));
  put(out, static_cast<int32_t>(message.status.signal));
  put(out, static_cast<uint8_t>(message.status.core_dumped));
  put(out, static_cast<int32_t>(message.status.exec_error));
  put(out, static_cast<uint8_t>(message.was_asked));
  put(out, static_cast<uint8_t>(message.note.has_value()));
  if (message.note) {
    put(out, message.note->rank);
    put(out, static_cast<int32_t>(message.note->code));
    put_text(out, message.note->text);
  }
  return out;
}

Result<WorkerExit> decode_exit(std::string_view payload) {
  Unpacker in(payload);
  WorkerExit message;
  message.rank = in.get<int32_t>();
  message.status.code = in.get<int32_t>();
  message.status.signal = in.get<int32_t>();
  message.status.core_dumped = in.get<uint8_t>() != 0;
  message.status.exec_error = in.get<int32_t>();
  message.was_asked = in.get<uint8_t>() != 0;
  if (in.get<uint8_t>() != 0) {
    FailureNote note;
    note.rank = in.get<int32_t>();
    const auto code = in.get<int32_t>();
    note.text = in.get_text();
    if (code <= 0 || code > static_cast<int32_t>(kLastStatusCode) ||
        note.text.size() > kMaxFailureTextBytes) {
      return corrupted("the exit message has a damaged note");
    }
    note.code = static_cast<StatusCode>(code);
    message.note = std::move(note);
  }
  return checked(in, std::move(message), "exit");
}

std::string encode(const Inquiry& message) {
  std::string out;
  put_text(out, message.key);
  put_list(out, message.interfaces);
  return out;
}

Result<Inquiry> decode_inquiry(std::string_view payload) {
  Unpacker in(payload);
  Inquiry message;
  message.key = in.get_text();
  message.interfaces = get_list(in);
  return checked(in, std::move(message), "inquiry");
}

std::string encode(const ProbeOrder& message) {
  std::string out;
  put_text(out, message.host);
  put_text(out, message.addresses);
  return out;
}

Result<ProbeOrder> decode_probe_order(std::string_view payload) {
  Unpacker in(payload);
  ProbeOrder message;
  message.host = in.get_text();
  message.addresses = in.get_text();
  return checked(in, std::move(message), "probe");
}

std::string encode(const FilePiece& message) {
  std::string out;
  put(out, message.rank);
  put(out, static_cast<uint8_t>(message.file));
  put(out, static_cast<uint8_t>(message.is_last ? 1 : 0));
  out += message.bytes;
  return out;
}

Result<FilePiece> decode_file(std::string_view payload) {
  Unpacker in(payload);
  FilePiece piece;
  piece.rank = in.get<int32_t>();
  const auto file = in.get<uint8_t>();
  const auto is_last = in.get<uint8_t>();
  if (!in.is_good() || file > static_cast<uint8_t>(RunFile::kFailure) || is_last > 1) {
    return corrupted("the file message is damaged");
  }
  piece.file = static_cast<RunFile>(file);
  piece.is_last = is_last == 1;
  piece.bytes = in.rest();
  return piece;
}

std::string encode_number(uint32_t number) {
  std::string out;
  put(out, number);
  return out;
}

Result<uint32_t> decode_number(std::string_view payload) {
  Unpacker in(payload);
  const auto number = in.get<uint32_t>();
  return checked(in, number, "short");
}

}  // namespace hvd::launch
