#include "launch/link/join_message.h"

#include "net/packing.h"

namespace hvd::launch {

std::string encode(const JoinMessage& message) {
  std::string out;
  net::put_text(out, message.version);
  net::put_text(out, message.hostname);
  net::put(out, message.slots);
  return out;
}

Result<JoinMessage> decode_join(std::string_view payload) {
  net::Unpacker in(payload);
  JoinMessage message;
  message.version = in.get_text();
  message.hostname = in.get_text();
  message.slots = in.get<int32_t>();
  if (!in.is_complete()) return corrupted("the message of a host that joins is damaged");
  return message;
}

std::string encode(const EndMessage& message) {
  std::string out;
  net::put(out, message.exit_code);
  net::put_text(out, message.text);
  return out;
}

Result<EndMessage> decode_end(std::string_view payload) {
  net::Unpacker in(payload);
  EndMessage message;
  message.exit_code = in.get<int32_t>();
  message.text = in.get_text();
  if (!in.is_complete()) return corrupted("the last message of the launcher is damaged");
  return message;
}

}  // namespace hvd::launch
