// yaml.h - reads the part of YAML that configuration files use: nested maps and lists (also in
// braces and brackets, within a line), scalars, comments, quotes. Strict: whatever else YAML knows
// (anchors, tags, blocks of text) is an error that names the line, never a guess. Of a key that is
// there twice the last counts. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace hvd::launch {

struct YamlNode {
  enum class Kind { kNull, kScalar, kMap, kList };

  Kind kind = Kind::kNull;
  size_t line = 0;  // counted from 1
  std::string scalar = {};
  std::vector<std::pair<std::string, YamlNode>> entries = {};  // of a map, in the file's order
  std::vector<YamlNode> items = {};                            // of a list

  const YamlNode* find(std::string_view key) const;  // null: not there
};

// Errors read "line 3: ...".
Result<YamlNode> parse_yaml(std::string_view text);

}  // namespace hvd::launch
