#include "launch/options/yaml.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/text.h"
#include "launch/options/yaml_scalars.h"

namespace hvd::launch {
namespace {

constexpr size_t kMaxDepth = 32;       // deeper nesting is a mistake, or an attack on the stack
constexpr size_t kMaxNodes = 100'000;  // aliases of aliases grow without end

using NodeKind = YamlNode::Kind;

bool is_null_word(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

// Of a key that is there twice the last value counts, as everywhere.
void set_entry(YamlNode& map, const std::string& key, YamlNode value) {
  const auto same = std::find_if(map.entries.begin(), map.entries.end(),
                                 [&](const auto& entry) { return entry.first == key; });
  if (same == map.entries.end()) {
    map.entries.emplace_back(key, std::move(value));
  } else {
    same->second = std::move(value);
  }
}

// The entries of a map, or of a list of maps, that `map` lacks.
bool merge_entries(YamlNode& map, const YamlNode& from) {
  if (from.kind == NodeKind::kList) {
    return std::all_of(from.items.begin(), from.items.end(), [&](const YamlNode& item) {
      return item.kind == NodeKind::kMap && merge_entries(map, item);
    });
  }
  for (const auto& [key, value] : from.entries) {
    if (map.find(key) == nullptr) map.entries.emplace_back(key, value);
  }
  return from.kind == NodeKind::kMap;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : cursor_(text) {}

  Result<YamlNode> parse_document() {
    HVD_TRY(skip_head());
    if (is_at_end()) return YamlNode{.kind = NodeKind::kMap, .line = 1};
    HVD_TRY_ASSIGN(YamlNode node, parse_value({.indent = -1, .may_be_block = true}, 0));
    HVD_TRY(cursor_.skip_space());
    if (cursor_.at_document_mark() && cursor_.at() == '.') return node;
    if (cursor_.at_document_mark()) return error("expected one document, got a second one");
    if (!cursor_.at_end()) return error("the indentation is wrong");
    if (node.kind == NodeKind::kScalar) {
      return yaml_error(node.line,
                        concat("expected 'key: value' or '- item', got '", node.scalar, "'"));
    }
    return node;
  }

 private:
  // What stands before a node: &anchor and !!tag.
  struct Properties {
    std::string anchor = {};
    std::string tag = {};
    bool crossed = false;  // the node stands in another line
    bool is_empty() const { return anchor.empty() && tag.empty(); }
  };
  struct Place {
    int indent;                 // of what holds the value
    bool may_be_block = false;  // maps and lists with an entry per line may begin in this line
    bool list_beside = false;   // a list may stand at the same depth as its key
  };

  Status error(std::string_view what) const { return yaml_error(cursor_.line(), what); }

  bool is_at_end() const { return cursor_.at_end() || cursor_.at_document_mark(); }
  bool is_dash() const { return cursor_.at() == '-' && cursor_.at_gap(1); }
  static bool is_quote(char c) { return c == '"' || c == '\''; }

  // Directives, and the mark where the document begins.
  Status skip_head() {
    HVD_TRY(cursor_.skip_space());
    while (cursor_.at() == '%' && cursor_.column() == 0) {
      cursor_.advance(cursor_.rest_of_line().size());
      HVD_TRY(cursor_.skip_space());
    }
    if (cursor_.at_document_mark() && cursor_.at() == '-') cursor_.advance(3);
    HVD_TRY(cursor_.skip_space());
    return Status::ok();
  }

  std::string take_word() {
    std::string word;
    while (!cursor_.at_gap() &&
           std::string_view(",[]{}").find(cursor_.at()) == std::string_view::npos) {
      word += cursor_.at();
      cursor_.advance();
    }
    return word;
  }

  Result<Properties> read_properties() {
    Properties found;
    while (cursor_.at() == '&' || cursor_.at() == '!') {
      std::string& word = cursor_.at() == '&' ? found.anchor : found.tag;
      word = take_word();
      if (word == "&") return error("an anchor has no name");
      const size_t line = cursor_.line();
      HVD_TRY(cursor_.skip_space());
      found.crossed = found.crossed || cursor_.line() != line;
    }
    static constexpr std::string_view kKnown[] = {"",       "!",      "!!str", "!!int", "!!float",
                                                  "!!bool", "!!null", "!!map", "!!seq"};
    if (std::find(std::begin(kKnown), std::end(kKnown), found.tag) == std::end(kKnown)) {
      return error(concat("the tag ", found.tag, " means nothing here"));
    }
    return found;
  }

  // Whether "key:" begins here, perhaps behind an anchor.
  bool is_at_key() const {
    if (is_dash()) return false;
    Parser ahead(*this);
    if (!ahead.read_properties().is_ok() || ahead.cursor_.line() != cursor_.line()) return false;
    if (!ahead.read_key().is_ok()) return false;
    ahead.cursor_.skip_blanks();
    return ahead.cursor_.at() == ':' && ahead.cursor_.at_gap(1);
  }

  Result<std::string> read_key() {
    if (is_quote(cursor_.at())) return read_yaml_quoted(cursor_, YamlContext::kKey);
    if (cursor_.at() == '*') {
      HVD_TRY_ASSIGN(const YamlNode node, read_alias());
      return node.scalar;
    }
    if (std::string_view("[]{},#|>%@`").find(cursor_.at()) != std::string_view::npos) {
      return error("expected a key");
    }
    return read_yaml_plain(cursor_, YamlContext::kKey, 0);
  }

  Result<YamlNode> read_alias() {
    const std::string name = take_word();
    const auto found = anchors_.find("&" + name.substr(1));
    if (found == anchors_.end()) return error(concat("nothing is called ", name.substr(1)));
    HVD_TRY(count_nodes(found->second));
    return found->second;
  }

  Status count_nodes(const YamlNode& node) {
    if (++nodes_ > kMaxNodes) return error("too many nodes");
    for (const auto& [key, value] : node.entries) HVD_TRY(count_nodes(value));
    for (const YamlNode& item : node.items) HVD_TRY(count_nodes(item));
    return Status::ok();
  }

  // What stands behind a key or a dash: in the same line, or indented below it.
  Result<YamlNode> parse_value(Place place, size_t depth) {
    if (depth > kMaxDepth) return error("nested too deeply");
    const size_t first_line = cursor_.line();
    HVD_TRY(cursor_.skip_space());
    const bool crossed = cursor_.line() != first_line;
    const YamlNode nothing{.kind = NodeKind::kNull, .line = first_line};
    if (is_outside(place, crossed)) return nothing;
    place.may_be_block = place.may_be_block || crossed;
    if (place.may_be_block && is_at_key()) return parse_map(depth);
    HVD_TRY_ASSIGN(const Properties properties, read_properties());
    YamlNode node = nothing;
    if (properties.crossed) {
      HVD_TRY_ASSIGN(node, parse_below(place, properties, depth));
    } else if (!is_at_end()) {
      HVD_TRY_ASSIGN(node, parse_here(place, properties, depth));
    }
    if (node.kind == NodeKind::kNull && properties.tag == "!!str") node.kind = NodeKind::kScalar;
    if (!properties.anchor.empty()) anchors_[properties.anchor] = node;
    return node;
  }

  bool is_outside(const Place& place, bool crossed) const {
    if (is_at_end()) return true;
    if (!crossed || cursor_.column() > place.indent) return false;
    return !(place.list_beside && cursor_.column() == place.indent && is_dash());
  }

  // Behind an anchor or tag at the end of a line.
  Result<YamlNode> parse_below(Place place, const Properties& properties, size_t depth) {
    if (is_outside(place, true)) return YamlNode{.kind = NodeKind::kNull, .line = cursor_.line()};
    place.may_be_block = true;
    if (is_at_key()) return parse_map(depth);
    return parse_here(place, properties, depth);
  }

  Result<YamlNode> parse_here(const Place& place, const Properties& properties, size_t depth) {
    if (is_dash()) {
      if (!place.may_be_block) return error("a list must begin in a line of its own");
      return parse_list(depth);
    }
    if (cursor_.at() == '?' && cursor_.at_gap(1)) return error("keys behind '?' are not supported");
    if (cursor_.at() == '{' || cursor_.at() == '[') {
      HVD_TRY_ASSIGN(YamlNode node, parse_flow(depth));
      HVD_TRY(expect_line_end());
      return node;
    }
    if (cursor_.at() == '*') {
      HVD_TRY_ASSIGN(YamlNode node, read_alias());
      HVD_TRY(expect_line_end());
      return node;
    }
    const bool is_block = cursor_.at() == '|' || cursor_.at() == '>';
    HVD_TRY_ASSIGN(YamlNode node, parse_scalar(YamlContext::kBlock, place.indent, properties));
    if (!is_block) HVD_TRY(expect_line_end());
    return node;
  }

  Status expect_line_end() {
    YamlCursor before = cursor_;
    const size_t line = cursor_.line();
    HVD_TRY(before.skip_space());
    if (before.line() != line || before.at_end()) return Status::ok();
    return error(concat("expected the end of the line, got ", before.rest_of_line()));
  }

  Result<YamlNode> parse_scalar(YamlContext context, int indent, const Properties& properties) {
    YamlNode node{.kind = NodeKind::kScalar, .line = cursor_.line()};
    if (++nodes_ > kMaxNodes) return error("too many nodes");
    const char first = cursor_.at();
    if (is_quote(first)) {
      HVD_TRY_ASSIGN(node.scalar, read_yaml_quoted(cursor_, context));
      node.is_quoted = true;
      return node;
    }
    if (context == YamlContext::kBlock && (first == '|' || first == '>')) {
      HVD_TRY_ASSIGN(node.scalar, read_yaml_block(cursor_, indent));
      return node;
    }
    if (first != '\0' && std::string_view("#|>%@`]}").find(first) != std::string_view::npos) {
      return error(concat("a value cannot begin with ", std::string(1, first),
                          " outside quotes: ", cursor_.rest_of_line()));
    }
    HVD_TRY_ASSIGN(node.scalar, read_yaml_plain(cursor_, context, indent));
    if (is_null_word(node.scalar) && properties.tag != "!!str" && properties.tag != "!") {
      node = {.kind = NodeKind::kNull, .line = node.line};
    }
    return node;
  }

  Result<YamlNode> parse_map(size_t depth) {
    YamlNode map{.kind = NodeKind::kMap, .line = cursor_.line()};
    std::vector<YamlNode> merged;
    const int column = cursor_.column();
    while (cursor_.column() == column && !is_at_end() && !is_dash()) {
      const size_t line = cursor_.line();
      if (!is_at_key()) {
        return error(concat("expected 'key: value', got '", cursor_.rest_of_line(), "'"));
      }
      HVD_TRY_ASSIGN(const Properties properties, read_properties());
      HVD_TRY_ASSIGN(const std::string key, read_key());
      if (key.empty()) return yaml_error(line, "a key is empty");
      if (!properties.anchor.empty()) {
        anchors_[properties.anchor] = {.kind = NodeKind::kScalar, .line = line, .scalar = key};
      }
      cursor_.skip_blanks();
      cursor_.advance();  // the colon
      HVD_TRY_ASSIGN(YamlNode value,
                     parse_value({.indent = column, .list_beside = true}, depth + 1));
      HVD_TRY(keep_entry(map, merged, key, std::move(value)));
      HVD_TRY(cursor_.skip_space());
    }
    return finish_map(std::move(map), merged, column);
  }

  Status keep_entry(YamlNode& map, std::vector<YamlNode>& merged, const std::string& key,
                    YamlNode value) const {
    if (key != "<<") {
      set_entry(map, key, std::move(value));
      return Status::ok();
    }
    YamlNode probe;
    if (!merge_entries(probe, value)) return error("expected a map, or a list of maps, behind <<");
    merged.push_back(std::move(value));
    return Status::ok();
  }

  Result<YamlNode> finish_map(YamlNode map, const std::vector<YamlNode>& merged, int column) {
    if (!is_at_end() && cursor_.column() > column) return error("the indentation is wrong");
    for (const YamlNode& from : merged) merge_entries(map, from);
    return map;
  }

  Result<YamlNode> parse_list(size_t depth) {
    YamlNode list{.kind = NodeKind::kList, .line = cursor_.line()};
    const int column = cursor_.column();
    while (cursor_.column() == column && !is_at_end() && is_dash()) {
      cursor_.advance();
      HVD_TRY_ASSIGN(YamlNode item,
                     parse_value({.indent = column, .may_be_block = true}, depth + 1));
      list.items.push_back(std::move(item));
      HVD_TRY(cursor_.skip_space());
    }
    if (!is_at_end() && cursor_.column() > column) return error("the indentation is wrong");
    return list;
  }

  // Lists and maps in brackets and braces: [a, {b: c}], over as many lines as they like.
  Result<YamlNode> parse_flow(size_t depth) {
    if (depth > kMaxDepth) return error("nested too deeply");
    HVD_TRY_ASSIGN(const Properties properties, read_properties());
    YamlNode node;
    if (cursor_.at() == '{' || cursor_.at() == '[') {
      const size_t first_line = cursor_.line();
      const bool is_map = cursor_.at() == '{';
      cursor_.advance();
      HVD_TRY_ASSIGN(
          node, is_map ? parse_flow_map(first_line, depth) : parse_flow_list(first_line, depth));
    } else if (cursor_.at() == '*') {
      HVD_TRY_ASSIGN(node, read_alias());
    } else {
      HVD_TRY_ASSIGN(node, parse_scalar(YamlContext::kFlow, -1, properties));
    }
    if (!properties.anchor.empty()) anchors_[properties.anchor] = node;
    return node;
  }

  bool take(char c) {
    if (cursor_.at() != c) return false;
    cursor_.advance();
    return true;
  }

  // Between two entries; at the end `close` stays.
  Status next_entry(char close, size_t first_line, std::string_view what) {
    HVD_TRY(cursor_.skip_space());
    if (take(',') || cursor_.at() == close) return cursor_.skip_space();
    if (is_at_end()) return yaml_error(first_line, concat(what, " does not end"));
    return error(
        concat("expected ',' or '", std::string(1, close), "', got ", cursor_.rest_of_line()));
  }

  // Behind a key in braces or brackets; none: there is no colon.
  Result<std::optional<YamlNode>> parse_flow_value(size_t depth) {
    YamlNode value{.kind = NodeKind::kNull, .line = cursor_.line()};
    HVD_TRY(cursor_.skip_space());
    if (!take(':')) return std::optional<YamlNode>();
    HVD_TRY(cursor_.skip_space());
    if (std::string_view(",]}").find(cursor_.at()) == std::string_view::npos && !is_at_end()) {
      HVD_TRY_ASSIGN(value, parse_flow(depth + 1));
    }
    return std::optional(std::move(value));
  }

  Result<YamlNode> parse_flow_map(size_t first_line, size_t depth) {
    YamlNode map{.kind = NodeKind::kMap, .line = first_line};
    std::vector<YamlNode> merged;
    HVD_TRY(cursor_.skip_space());
    while (!take('}')) {
      if (is_at_end()) return yaml_error(first_line, "a map in braces does not end");
      HVD_TRY_ASSIGN(const YamlNode key, parse_flow(depth + 1));
      HVD_TRY_ASSIGN(std::optional<YamlNode> value, parse_flow_value(depth));
      if (key.scalar.empty()) return error("a key is empty");
      YamlNode nothing{.kind = NodeKind::kNull, .line = key.line};
      HVD_TRY(keep_entry(map, merged, key.scalar, value ? std::move(*value) : std::move(nothing)));
      HVD_TRY(next_entry('}', first_line, "a map in braces"));
    }
    for (const YamlNode& from : merged) merge_entries(map, from);
    return map;
  }

  Result<YamlNode> parse_flow_list(size_t first_line, size_t depth) {
    YamlNode list{.kind = NodeKind::kList, .line = first_line};
    HVD_TRY(cursor_.skip_space());
    while (!take(']')) {
      if (is_at_end()) return yaml_error(first_line, "a list in brackets does not end");
      if (cursor_.at() == ',') return error("an item is missing");
      HVD_TRY_ASSIGN(YamlNode item, parse_flow(depth + 1));
      HVD_TRY_ASSIGN(std::optional<YamlNode> value, parse_flow_value(depth));
      if (value) {  // [a: b] is a list of one map
        YamlNode pair{.kind = NodeKind::kMap, .line = item.line};
        set_entry(pair, item.scalar, std::move(*value));
        item = std::move(pair);
      }
      list.items.push_back(std::move(item));
      HVD_TRY(next_entry(']', first_line, "a list in brackets"));
    }
    return list;
  }

  YamlCursor cursor_;
  std::map<std::string, YamlNode> anchors_;
  size_t nodes_ = 0;
};

// Files of other systems: a mark of the byte order, and lines that end in \r\n.
std::string with_plain_ends(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && text.substr(i + 1).starts_with('\n')) continue;
    out += text[i] == '\r' ? '\n' : text[i];
  }
  return out;
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [key](const auto& entry) { return entry.first == key; });
  return found == entries.end() ? nullptr : &found->second;
}

Result<YamlNode> parse_yaml(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return yaml_error(1, "the text holds a null byte");
  const std::string plain = with_plain_ends(text);
  return Parser(plain).parse_document();
}

}  // namespace hvd::launch
