// agent_fuzz.cc - whatever the other end of an ssh connection says ends in a value or a Status. The
// first byte says what is read: a stream of frames, or the payload of one kind.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "launch/doctor/doctor_facts.h"
#include "launch/doctor/doctor_probe.h"
#include "launch/link/agent_message.h"
#include "launch/link/join_message.h"

namespace {

using namespace hvd::launch;

void read_stream(std::string_view bytes, bool skip_noise) {
  FrameReader reader(skip_noise);
  // In two parts, as a pipe may hand them out.
  reader.append(bytes.substr(0, bytes.size() / 2));
  for (int part = 0; part < 2; ++part) {
    while (true) {
      const auto frame = reader.next();
      if (!frame || !*frame) break;
    }
    if (part == 0) reader.append(bytes.substr(bytes.size() / 2));
  }
}

void read_payload(std::string_view bytes) {
  (void)decode_hello(bytes).is_ok();
  (void)decode_problem(bytes).is_ok();
  (void)decode_output(bytes).is_ok();
  (void)decode_started(bytes).is_ok();
  (void)decode_exit(bytes).is_ok();
  (void)decode_inquiry(bytes).is_ok();
  (void)decode_probe_order(bytes).is_ok();
  (void)decode_facts(bytes).is_ok();
  (void)decode_probe(bytes).is_ok();
  (void)decode_number(bytes).is_ok();
  (void)decode_join(bytes).is_ok();
  (void)decode_end(bytes).is_ok();
  if (const auto piece = decode_file(bytes)) {
    HVD_ASSERT(encode(*piece) == bytes, "a piece of a file has one encoding");
  }
  if (const auto message = decode_message(bytes)) {
    HVD_ASSERT(encode(*message) == bytes, "an elastic worker's message has one encoding");
  }
  if (const auto start = decode_start(bytes)) {
    HVD_ASSERT(encode(*start) == bytes, "a start message has one encoding");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] == 'n') {
    read_stream(bytes, true);
  } else if (data[0] == 'f') {
    read_stream(bytes, false);
  } else {
    read_payload(bytes);
  }
  return 0;
}
