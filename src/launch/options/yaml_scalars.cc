#include "launch/options/yaml_scalars.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace hvd::launch {

Status yaml_error(size_t line, std::string_view what) {
  return invalid_argument(concat("line ", line, ": ", what));
}

bool YamlCursor::at_gap(size_t ahead) const {
  return at_blank(ahead) || at(ahead) == '\n' || at(ahead) == '\0';
}

bool YamlCursor::at_document_mark() const {
  if (column() != 0 || !at_gap(3)) return false;
  const std::string_view mark = text_.substr(std::min(place_, text_.size()), 3);
  return mark == "---" || mark == "...";
}

std::string_view YamlCursor::rest_of_line() const {
  const std::string_view rest = text_.substr(std::min(place_, text_.size()));
  return rest.substr(0, rest.find('\n'));
}

void YamlCursor::advance(size_t count) {
  for (; count > 0 && !at_end(); --count) {
    if (text_[place_++] == '\n') {
      ++line_;
      line_start_ = place_;
    }
  }
}

Status YamlCursor::skip_space() {
  while (true) {
    const bool is_indentation = column() == 0;
    while (at(0) == ' ') advance();
    const bool has_tab = is_indentation && at() == '\t';
    skip_blanks();
    if (at() == '#') {
      while (!at_end() && at() != '\n') advance();
    }
    if (at() != '\n') {
      if (has_tab && !at_end()) return yaml_error(line_, "a tab in the indentation: use spaces");
      return Status::ok();
    }
    advance();
  }
}

namespace {

void append_utf8(std::string& out, uint32_t code) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80U | (code >> shift & 0x3FU)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0U | code >> 6U);
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0U | code >> 12U);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0U | code >> 18U);
    tail(12);
    tail(6);
    tail(0);
  }
}

// The character that so many hexadecimal digits mean; none: they do not, or it would not be text.
std::optional<uint32_t> read_hex(YamlCursor& cursor, size_t digits) {
  uint32_t code = 0;
  for (size_t i = 0; i < digits; ++i) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const char c = cursor.at(i);
    const size_t value = kDigits.find(c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c);
    if (c == '\0' || value == kDigits.npos) return std::nullopt;
    code = code * 16 + static_cast<uint32_t>(value);
  }
  if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return std::nullopt;
  cursor.advance(digits);
  return code;
}

// Behind the backslash.
Status read_escape(YamlCursor& cursor, std::string& out) {
  constexpr std::string_view kLetters = "0abt\tnvfre \"/\\";
  constexpr std::string_view kMeanings{"\0\a\b\t\t\n\v\f\r\x1b \"/\\", 14};
  const char letter = cursor.at();
  const size_t line = cursor.line();
  cursor.advance();
  if (const size_t which = kLetters.find(letter); which != kLetters.npos) {
    out += kMeanings[which];
    return Status::ok();
  }
  const size_t digits = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
  std::optional<uint32_t> code = digits > 0 ? read_hex(cursor, digits) : std::nullopt;
  if (letter == 'N') code = 0x85;
  if (letter == '_') code = 0xA0;
  if (letter == 'L') code = 0x2028;
  if (letter == 'P') code = 0x2029;
  if (!code) return yaml_error(line, concat("unknown escape \\", std::string(1, letter)));
  append_utf8(out, *code);
  return Status::ok();
}

// At the end of a line: what it and the empty lines behind it mean. One end is a blank; with empty
// lines, each of those is an end.
std::string fold_lines(YamlCursor& cursor) {
  std::string breaks;
  while (cursor.at() == '\n') {
    breaks += '\n';
    cursor.advance();
    cursor.skip_blanks();
  }
  return breaks.size() == 1 ? " " : breaks.substr(1);
}

void trim_blanks(std::string& text, size_t least) {
  while (text.size() > least && (text.back() == ' ' || text.back() == '\t')) text.pop_back();
}

bool ends_plain(const YamlCursor& cursor, YamlContext context) {
  const bool is_flow = context == YamlContext::kFlow;
  const auto is_flow_sign = [](char c) {
    return c != '\0' && std::string_view(",[]{}").find(c) != std::string_view::npos;
  };
  if (is_flow && is_flow_sign(cursor.at())) return true;
  return cursor.at() == ':' && (cursor.at_gap(1) || (is_flow && is_flow_sign(cursor.at(1))));
}

}  // namespace

Result<std::string> read_yaml_quoted(YamlCursor& cursor, YamlContext context) {
  const char quote = cursor.at();
  const size_t first_line = cursor.line();
  std::string out;
  size_t kept = 0;  // what came from an escape is not trimmed at the end of a line
  cursor.advance();
  while (cursor.at() != quote || (quote == '\'' && cursor.at(1) == '\'')) {
    const bool leaves_line = cursor.at() == '\n' && context == YamlContext::kKey;
    if (cursor.at_end() || leaves_line || cursor.at_document_mark()) {
      return yaml_error(first_line, "a text in quotes does not end");
    }
    if (cursor.at() == '\n') {
      trim_blanks(out, kept);
      out += fold_lines(cursor);
      kept = out.size();
    } else if (quote == '"' && cursor.at() == '\\' && cursor.at(1) == '\n') {
      cursor.advance();
      const std::string folded = fold_lines(cursor);
      if (folded != " ") out += folded;  // the line goes on, without a blank
      kept = out.size();
    } else if (quote == '"' && cursor.at() == '\\') {
      cursor.advance();
      HVD_TRY(read_escape(cursor, out));
      kept = out.size();
    } else {
      if (cursor.at() == '\'' && quote == '\'') cursor.advance();  // two of them mean one
      out += cursor.at();
      cursor.advance();
    }
  }
  cursor.advance();
  return out;
}

Result<std::string> read_yaml_plain(YamlCursor& cursor, YamlContext context, int indent) {
  std::string out;
  while (true) {
    while (!cursor.at_end() && cursor.at() != '\n' && !ends_plain(cursor, context)) {
      if (cursor.at() == '#' && !out.empty() && (out.back() == ' ' || out.back() == '\t')) break;
      out += cursor.at();
      cursor.advance();
    }
    trim_blanks(out, 0);
    if (cursor.at() != '\n' || context == YamlContext::kKey) return out;
    YamlCursor ahead = cursor;
    const std::string folded = fold_lines(ahead);
    // Indentation by tabs is an error for whoever reads on.
    const bool goes_on = !ahead.at_end() && ahead.before() != '\t' && ahead.at() != '#' &&
                         !ahead.at_document_mark() &&
                         (context == YamlContext::kFlow || ahead.column() > indent) &&
                         !ends_plain(ahead, context);
    if (!goes_on) return out;
    cursor = ahead;
    out += folded;
  }
}

namespace {

struct BlockHeader {
  bool is_folded = false;
  char chomping = ' ';  // '-': no end of line at the end; '+': all of them; else one
  int more = 0;         // indentation that was given; 0: that of the first line
};

Result<BlockHeader> read_header(YamlCursor& cursor) {
  BlockHeader header{.is_folded = cursor.at() == '>'};
  cursor.advance();
  for (; !cursor.at_gap(); cursor.advance()) {
    const char c = cursor.at();
    if (c == '+' || c == '-') {
      header.chomping = c;
    } else if (c >= '1' && c <= '9') {
      header.more = c - '0';
    } else {
      return yaml_error(cursor.line(), concat("expected the end of the line behind | or >, got '",
                                              cursor.rest_of_line(), "'"));
    }
  }
  cursor.skip_blanks();
  if (cursor.at() == '#') {
    while (!cursor.at_end() && cursor.at() != '\n') cursor.advance();
  }
  if (!cursor.at_end() && cursor.at() != '\n') {
    return yaml_error(cursor.line(), "expected the end of the line behind | or >");
  }
  cursor.advance();
  return header;
}

// Empty lines, and the indentation of the next other one up to `indent`.
std::string read_empty_lines(YamlCursor& cursor, int indent) {
  std::string breaks;
  while (true) {
    while (cursor.at() == ' ' && cursor.column() < indent) cursor.advance();
    if (cursor.at() != '\n') return breaks;
    breaks += '\n';
    cursor.advance();
  }
}

// The indentation of the first line that has more than blanks.
int find_indent(YamlCursor cursor, int least) {
  int widest = least;
  while (true) {
    while (cursor.at() == ' ') cursor.advance();
    widest = std::max(widest, cursor.column());
    if (cursor.at() != '\n') return widest;
    cursor.advance();
  }
}

}  // namespace

Result<std::string> read_yaml_block(YamlCursor& cursor, int indent) {
  HVD_TRY_ASSIGN(const BlockHeader header, read_header(cursor));
  const int least = std::max(indent + 1, 1);
  const int own = header.more > 0 ? least + header.more - 1 : find_indent(cursor, least);
  std::string out, line_end;
  std::string breaks = read_empty_lines(cursor, own);
  while (cursor.column() == own && !cursor.at_end()) {
    out += breaks;
    const bool is_text = !cursor.at_blank();
    const std::string_view line = cursor.rest_of_line();
    out += line;
    cursor.advance(line.size());
    line_end = cursor.at_end() ? "" : "\n";
    cursor.advance();
    breaks = read_empty_lines(cursor, own);
    if (cursor.column() != own || cursor.at_end()) break;
    // Lines that are indented further keep their ends.
    const bool joins = header.is_folded && is_text && !cursor.at_blank();
    if (!joins) out += line_end;
    if (joins && breaks.empty()) out += ' ';
  }
  if (header.chomping != '-') out += line_end;
  if (header.chomping == '+') out += breaks;
  return out;
}

}  // namespace hvd::launch
