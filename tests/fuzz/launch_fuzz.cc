// launch_fuzz.cc - whatever a file, a batch system or the other end of an ssh connection says ends
// in a value or a Status.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "launch/agent_message.h"
#include "launch/config_file.h"
#include "launch/doctor_facts.h"
#include "launch/doctor_probe.h"
#include "launch/hosts.h"
#include "launch/lsf_hosts.h"
#include "launch/shell_words.h"
#include "launch/slurm_hosts.h"

namespace {

using namespace hvd::launch;

void read_files(std::string_view text) {
  Options options;
  (void)apply_config("fuzz", text, options).is_ok();
  (void)parse_hosts(text).is_ok();
  (void)parse_hostfile(text, 1).is_ok();
  (void)compute_nodes(text).is_ok();
  (void)node_shape(text).is_ok();
  (void)threads_per_core(text).is_ok();
  if (text.size() < 64) {  // short texts can mean many nodes
    (void)expand_nodelist(text).is_ok();
    (void)expand_counts(text).is_ok();
  }
  if (const auto words = shell_split(text)) {
    HVD_ASSERT(shell_split(shell_join(*words)).value() == *words, "quoting loses nothing");
  }
}

void read_messages(std::string_view bytes) {
  (void)decode_hello(bytes).is_ok();
  (void)decode_problem(bytes).is_ok();
  (void)decode_output(bytes).is_ok();
  (void)decode_started(bytes).is_ok();
  (void)decode_exit(bytes).is_ok();
  (void)decode_inquiry(bytes).is_ok();
  (void)decode_probe_order(bytes).is_ok();
  (void)decode_facts(bytes).is_ok();
  (void)decode_probe(bytes).is_ok();
  if (const auto piece = decode_file(bytes)) {
    HVD_ASSERT(encode(*piece) == bytes, "a piece of a file has one encoding");
  }
  if (const auto start = decode_start(bytes)) {
    HVD_ASSERT(encode(*start) == bytes, "a start message has one encoding");
  }
  for (bool skip_noise : {false, true}) {
    FrameReader reader(skip_noise);
    reader.append(bytes);
    while (true) {
      const auto frame = reader.next();
      if (!frame || !*frame) break;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  read_files(bytes);
  read_messages(bytes);
  return 0;
}
