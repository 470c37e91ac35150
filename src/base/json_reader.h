// json_reader.h - as much of JSON as the files of launchers need: strings and lists of strings at
// the top level of an object. Everything else is checked and skipped. Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hvd {

// Fields that are a string (one entry) or a list of strings; others are left out.
Result<std::map<std::string, std::vector<std::string>>> parse_json_object(std::string_view text);

// A list of strings.
Result<std::vector<std::string>> parse_json_strings(std::string_view text);

}  // namespace hvd
