// elastic_fuzz.cc - whatever a worker or a launcher of an elastic job says ends in a value, which
// is written as it was read, or in a Status.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "elastic/message.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto message = hvd::elastic::decode_to_launcher(bytes)) {
    if (hvd::elastic::encode(*message) != bytes) std::abort();
  }
  if (const auto message = hvd::elastic::decode_to_worker(bytes)) {
    if (hvd::elastic::encode(*message) != bytes) std::abort();
  }
  return 0;
}
