// yaml_scalars.h - a place in a YAML text, and the scalars that begin there: plain, in quotes, and
// blocks of text, over several lines and folded as YAML says. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace hvd::launch {

Status yaml_error(size_t line, std::string_view what);  // "line 3: ..."

// Text ends in '\0' for whoever looks behind it. Lines end in '\n'.
class YamlCursor {
 public:
  explicit YamlCursor(std::string_view text) : text_(text) {}

  char at(size_t ahead = 0) const {
    return place_ + ahead < text_.size() ? text_[place_ + ahead] : '\0';
  }
  char before() const { return place_ > 0 ? text_[place_ - 1] : '\n'; }
  bool at_end() const { return place_ >= text_.size(); }
  bool at_blank(size_t ahead = 0) const { return at(ahead) == ' ' || at(ahead) == '\t'; }
  // A blank, the end of the line or of the text.
  bool at_gap(size_t ahead = 0) const;
  // "---" or "..." at the beginning of a line.
  bool at_document_mark() const;
  size_t line() const { return line_; }
  int column() const { return static_cast<int>(place_ - line_start_); }
  std::string_view rest_of_line() const;

  void advance(size_t count = 1);
  void skip_blanks() {
    while (at_blank()) advance();
  }
  // Blanks, comments and ends of lines.
  Status skip_space();

 private:
  std::string_view text_;
  size_t place_ = 0;
  size_t line_ = 1;  // counted from 1
  size_t line_start_ = 0;
};

enum class YamlContext { kBlock, kFlow, kKey };  // a key of a block ends in its line

// At a quote.
Result<std::string> read_yaml_quoted(YamlCursor& cursor, YamlContext context);
// At the first letter. Lines that are indented more than `indent` go on with it.
Result<std::string> read_yaml_plain(YamlCursor& cursor, YamlContext context, int indent);
// At | or >.
Result<std::string> read_yaml_block(YamlCursor& cursor, int indent);

}  // namespace hvd::launch
