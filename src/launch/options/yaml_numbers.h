// yaml_numbers.h - integers as YAML 1.1 writes them and PyYAML reads them: 010 is 8, 0x10 is 16,
// 0b101 is 5, 1_000 is 1000 and 1:30 is 90. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace hvd::launch {

// A scalar that is wanted as a number, in decimal digits if it is one of those integers; any other
// stays as it is, for whoever reads it. Fails for what looks like one and is text to PyYAML: 08.
Result<std::string> yaml_number(std::string_view scalar);

}  // namespace hvd::launch
