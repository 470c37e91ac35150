// yaml_fuzz.cc - whatever stands in a configuration file ends in options or a Status.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "launch/options/config_file.h"
#include "launch/options/yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)hvd::launch::parse_yaml(text).is_ok();
  hvd::launch::Options options;
  (void)hvd::launch::apply_config("fuzz", text, options).is_ok();
  return 0;
}
