#include "launch/options/yaml.h"

#include <algorithm>
#include <optional>

#include "base/parse.h"
#include "base/text.h"

namespace hvd::launch {
namespace {

constexpr size_t kMaxDepth = 32;  // deeper nesting is a mistake, or an attack on the stack

Status error_at(size_t line, std::string_view what) {
  return invalid_argument(concat("line ", line, ": ", what));
}

struct Line {
  size_t number;
  size_t indent;
  std::string_view text;  // without indentation, comment and blanks at the end
};

// Elsewhere a quote is a letter like others: don't.
bool is_before_quote(char c) { return c == ' ' || c == '[' || c == '{' || c == ','; }

// Where a comment begins: a # at the start or after a blank, outside quotes.
size_t comment_start(std::string_view text) {
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\' && quote == '"') {
        ++i;
      } else if (c == quote && quote == '\'' && text.substr(i + 1).starts_with('\'')) {
        ++i;  // two single quotes mean one
      } else if (c == quote) {
        quote = 0;
      }
    } else if ((c == '"' || c == '\'') && (i == 0 || is_before_quote(text[i - 1]))) {
      quote = c;
    } else if (c == '#' && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '\t')) {
      return i;
    }
  }
  return text.size();
}

Result<std::vector<Line>> split_lines(std::string_view text) {
  std::vector<Line> lines;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t indent = std::min(line.find_first_not_of(' '), line.size());
    line = line.substr(0, comment_start(line));
    const std::string_view content = trim(line);
    if (content.empty() || content == "---" || content == "...") continue;
    if (line[indent] == '\t') return error_at(number, "a tab in the indentation: use spaces");
    lines.push_back({.number = number, .indent = indent, .text = content});
  }
  return lines;
}

Result<std::string> unquote(std::string_view text, size_t line) {
  const char quote = text.front();
  std::string out;
  size_t i = 1;
  for (; i < text.size(); ++i) {
    if (text[i] == quote) {
      // Between single quotes, two of them mean one.
      if (quote == '"' || i + 1 == text.size() || text[i + 1] != quote) break;
      ++i;
    } else if (quote == '"' && text[i] == '\\' && i + 1 < text.size()) {
      const char next = text[++i];
      if (next != '"' && next != '\\' && next != '/') {
        return error_at(line, concat("unsupported escape \\", next));
      }
    }
    out += text[i];
  }
  if (i + 1 != text.size()) return error_at(line, concat("expected one quoted text, got ", text));
  return out;
}

Result<YamlNode> parse_scalar(std::string_view text, size_t line) {
  YamlNode node{.kind = YamlNode::Kind::kScalar, .line = line};
  const char first = text.empty() ? '~' : text.front();
  if (first == '"' || first == '\'') {
    HVD_TRY_ASSIGN(node.scalar, unquote(text, line));
    return node;
  }
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    node.kind = YamlNode::Kind::kNull;
    return node;
  }
  if (std::string_view("&*!|>{%@`").find(first) != std::string_view::npos) {
    return error_at(line, concat("not supported here: ", text));
  }
  node.scalar = text;
  return node;
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

bool is_inline(std::string_view text) { return text.starts_with('{') || text.starts_with('['); }

// Lists and maps in one line: [a, {b: c}] and {a: 1, b: [2, 3]}.
class InlineParser {
 public:
  InlineParser(std::string_view text, size_t line) : rest_(text), line_(line) {}

  Result<YamlNode> parse() {
    HVD_TRY_ASSIGN(YamlNode node, parse_value(0));
    skip_blanks();
    if (!rest_.empty()) return error_at(line_, concat("expected the end of the line, got ", rest_));
    return node;
  }

 private:
  void skip_blanks() { rest_.remove_prefix(rest_.size() - trim_left(rest_).size()); }
  static std::string_view trim_left(std::string_view text) {
    return text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
  }

  bool take(char c) {
    skip_blanks();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  Result<YamlNode> parse_value(size_t depth) {
    if (depth > kMaxDepth) return error_at(line_, "nested too deeply");
    if (take('{')) return parse_map(depth);
    if (take('[')) return parse_list(depth);
    return parse_scalar(take_scalar(), line_);
  }

  static bool ends_key(char c) {
    return std::string_view(" ,[]{}").find(c) != std::string_view::npos;
  }

  // What stands before the next separator; a text in quotes as a whole.
  std::string_view take_scalar() {
    skip_blanks();
    size_t end = quoted_end();
    if (end == 0) {
      const auto ends = [&](size_t i) {
        return std::string_view(",[]{}").find(rest_[i]) != std::string_view::npos ||
               (rest_[i] == ':' && (i + 1 == rest_.size() || ends_key(rest_[i + 1])));
      };
      while (end < rest_.size() && !ends(end)) ++end;
    }
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return trim(text);
  }

  // Behind the closing quote; 0: no quote at the beginning.
  size_t quoted_end() const {
    const char quote = rest_.empty() ? ' ' : rest_.front();
    if (quote != '"' && quote != '\'') return 0;
    for (size_t i = 1; i < rest_.size(); ++i) {
      if (quote == '"' && rest_[i] == '\\') {
        ++i;
      } else if (rest_[i] == quote) {
        if (quote == '"' || !rest_.substr(i + 1).starts_with(quote)) return i + 1;
        ++i;  // two single quotes mean one
      }
    }
    return rest_.size();
  }

  // Between two entries; at the end `close` stays.
  Status next_entry(char close, std::string_view what) {
    if (take(',') || rest_.starts_with(close)) return Status::ok();
    if (rest_.empty()) return error_at(line_, concat(what, " must end in the same line"));
    return error_at(line_, concat("expected ',' or '", std::string(1, close), "', got ", rest_));
  }

  Result<YamlNode> parse_map(size_t depth) {
    YamlNode map{.kind = YamlNode::Kind::kMap, .line = line_};
    while (!take('}')) {
      HVD_TRY_ASSIGN(const YamlNode key, parse_scalar(take_scalar(), line_));
      YamlNode value{.kind = YamlNode::Kind::kNull, .line = line_};
      if (take(':')) {
        HVD_TRY_ASSIGN(value, parse_value(depth + 1));
      }
      HVD_TRY(next_entry('}', "a map in braces"));
      if (key.scalar.empty()) return error_at(line_, "a key is empty");
      set_entry(map, key.scalar, std::move(value));
    }
    return map;
  }

  Result<YamlNode> parse_list(size_t depth) {
    YamlNode list{.kind = YamlNode::Kind::kList, .line = line_};
    while (!take(']')) {
      const size_t before = rest_.size();
      HVD_TRY_ASSIGN(YamlNode item, parse_value(depth + 1));
      if (rest_.size() == before && !rest_.empty()) return error_at(line_, "an item is missing");
      HVD_TRY(next_entry(']', "a list in brackets"));
      list.items.push_back(std::move(item));
    }
    return list;
  }

  std::string_view rest_;
  size_t line_;
};

bool is_list_item(std::string_view text) { return text == "-" || text.starts_with("- "); }

// Where the colon of "key: value" or "key:" is; none: the line is no entry of a map.
std::optional<size_t> find_colon(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ':' && (i + 1 == text.size() || text[i + 1] == ' ')) return i;
  }
  return std::nullopt;
}

class Parser {
 public:
  explicit Parser(std::vector<Line> lines) : lines_(std::move(lines)) {}

  Result<YamlNode> parse_document() {
    if (lines_.empty()) return YamlNode{.kind = YamlNode::Kind::kMap, .line = 1};
    HVD_TRY_ASSIGN(YamlNode node, parse_block(lines_.front().indent, 0));
    if (next_ < lines_.size()) return error_at(lines_[next_].number, "the indentation is wrong");
    return node;
  }

 private:
  bool has_line(size_t indent) const {
    return next_ < lines_.size() && lines_[next_].indent == indent;
  }

  Result<YamlNode> parse_block(size_t indent, size_t depth) {
    if (depth > kMaxDepth) return error_at(lines_[next_].number, "nested too deeply");
    const Line& line = lines_[next_];
    if (is_inline(line.text)) {
      ++next_;
      return InlineParser(line.text, line.number).parse();
    }
    if (is_list_item(line.text)) return parse_list(indent, depth);
    if (find_colon(line.text)) return parse_map(indent, depth);
    return error_at(line.number,
                    concat("expected 'key: value' or '- item', got '", line.text, "'"));
  }

  // What stands behind a key or a dash: in the same line, or indented below it.
  Result<YamlNode> parse_value(std::string_view text, size_t line, size_t indent, size_t depth) {
    if (!text.empty()) {
      return is_inline(text) ? InlineParser(text, line).parse() : parse_scalar(text, line);
    }
    if (next_ < lines_.size()) {
      const Line& below = lines_[next_];
      // A list may stand at the same depth as its key.
      if (below.indent > indent || (below.indent == indent && is_list_item(below.text))) {
        return parse_block(below.indent, depth + 1);
      }
    }
    return YamlNode{.kind = YamlNode::Kind::kNull, .line = line};
  }

  Result<YamlNode> parse_map(size_t indent, size_t depth) {
    YamlNode map{.kind = YamlNode::Kind::kMap, .line = lines_[next_].number};
    while (has_line(indent) && !is_list_item(lines_[next_].text)) {
      const Line line = lines_[next_++];
      const auto colon = find_colon(line.text);
      if (!colon)
        return error_at(line.number, concat("expected 'key: value', got '", line.text, "'"));
      HVD_TRY_ASSIGN(const YamlNode key,
                     parse_scalar(trim(line.text.substr(0, *colon)), line.number));
      if (key.scalar.empty()) return error_at(line.number, "a key is empty");
      HVD_TRY_ASSIGN(YamlNode value,
                     parse_value(trim(line.text.substr(*colon + 1)), line.number, indent, depth));
      set_entry(map, key.scalar, std::move(value));
    }
    if (next_ < lines_.size() && lines_[next_].indent > indent) {
      return error_at(lines_[next_].number, "the indentation is wrong");
    }
    return map;
  }

  Result<YamlNode> parse_list(size_t indent, size_t depth) {
    YamlNode list{.kind = YamlNode::Kind::kList, .line = lines_[next_].number};
    while (has_line(indent) && is_list_item(lines_[next_].text)) {
      Line& line = lines_[next_];
      const std::string_view rest = trim(line.text.substr(1));
      if (!is_inline(rest) && find_colon(rest)) {
        // "- key: value": a map whose first line is this one, as deep as its first key.
        line.indent += line.text.size() - rest.size();
        line.text = rest;
        HVD_TRY_ASSIGN(YamlNode item, parse_block(line.indent, depth + 1));
        list.items.push_back(std::move(item));
        continue;
      }
      ++next_;
      HVD_TRY_ASSIGN(YamlNode item, parse_value(rest, line.number, indent, depth));
      list.items.push_back(std::move(item));
    }
    return list;
  }

  std::vector<Line> lines_;
  size_t next_ = 0;
};

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [key](const auto& entry) { return entry.first == key; });
  return found == entries.end() ? nullptr : &found->second;
}

Result<YamlNode> parse_yaml(std::string_view text) {
  HVD_TRY_ASSIGN(std::vector<Line> lines, split_lines(text));
  return Parser(std::move(lines)).parse_document();
}

}  // namespace hvd::launch
