// yaml.h - reads configuration files as PyYAML's safe_load does, which read them before: maps and
// lists in lines and in braces and brackets, plain and quoted scalars and blocks of text, anchors,
// aliases and merges (<<), comments. What a scalar means (a number, yes or no) is for whoever asked
// for it. Not read, with an error that names the line: keys behind '?', tags of programs, a second
// document. Of a key that is there twice the last counts. Pure; any thread.
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
  bool is_quoted = false;  // a scalar that is text, whatever it looks like
  std::vector<std::pair<std::string, YamlNode>> entries = {};  // of a map, in the file's order
  std::vector<YamlNode> items = {};                            // of a list

  const YamlNode* find(std::string_view key) const;  // null: not there
};

// Errors read "line 3: ...".
Result<YamlNode> parse_yaml(std::string_view text);

}  // namespace hvd::launch
