#include "base/json_reader.h"

#include <cstdint>
#include <optional>

#include "base/text.h"

namespace hvd {
namespace {

using Strings = std::vector<std::string>;

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  Result<std::map<std::string, Strings>> object() {
    std::map<std::string, Strings> fields;
    HVD_TRY(expect('{'));
    if (!take('}')) {
      do {
        HVD_TRY_ASSIGN(const std::string name, string());
        HVD_TRY(expect(':'));
        HVD_TRY_ASSIGN(auto values, value(0));
        if (values) fields[name] = std::move(*values);
      } while (take(','));
      HVD_TRY(expect('}'));
    }
    HVD_TRY(at_end());
    return fields;
  }

  Result<Strings> strings() {
    skip_blanks();
    if (!at('[')) return wrong("a list of strings");
    HVD_TRY_ASSIGN(auto values, value(0));
    HVD_TRY(at_end());
    if (!values) return wrong("a list of strings");
    return std::move(*values);
  }

 private:
  static constexpr int kMostDepth = 64;

  // The strings of a string or a list; none for anything else.
  Result<std::optional<Strings>> value(int depth) {
    if (depth > kMostDepth) return wrong("less depth");
    skip_blanks();
    if (at('"')) {
      HVD_TRY_ASSIGN(std::string one, string());
      return std::optional(Strings{std::move(one)});
    }
    if (at('[')) return list(depth);
    if (at('{')) return skip_object(depth);
    const size_t begin = at_;
    while (at_ < text_.size() && std::string_view(",]} \t\r\n").find(text_[at_]) == text_.npos)
      ++at_;
    if (at_ == begin) return wrong("a value");
    return std::optional<Strings>();  // a number, true, false, null
  }

  Result<std::optional<Strings>> list(int depth) {
    HVD_TRY(expect('['));
    Strings all;
    bool only_strings = true;
    if (take(']')) return std::optional(all);
    do {
      skip_blanks();
      const bool is_string = at('"');
      HVD_TRY_ASSIGN(auto item, value(depth + 1));
      only_strings = only_strings && is_string;
      if (is_string && item) all.push_back(std::move(item->front()));
    } while (take(','));
    HVD_TRY(expect(']'));
    return only_strings ? std::optional(std::move(all)) : std::optional<Strings>();
  }

  Result<std::optional<Strings>> skip_object(int depth) {
    HVD_TRY(expect('{'));
    if (take('}')) return std::optional<Strings>();
    do {
      HVD_TRY_ASSIGN(const std::string name, string());
      HVD_TRY(expect(':'));
      HVD_TRY_ASSIGN(const auto ignored, value(depth + 1));
    } while (take(','));
    HVD_TRY(expect('}'));
    return std::optional<Strings>();
  }

  // What this reads are names, which are plain: escapes other than the one-letter ones are refused.
  Result<std::string> string() {
    HVD_TRY(expect('"'));
    std::string out;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] != '\\') {
        out += text_[at_];
        continue;
      }
      constexpr std::string_view kEscapes = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
      const size_t which = ++at_ < text_.size() ? kEscapes.find(text_[at_]) : kEscapes.npos;
      if (which == kEscapes.npos) return wrong("a string without \\u");
      out += kMeanings[which];
    }
    HVD_TRY(expect('"', Blanks::kKeep));
    return out;
  }

  enum class Blanks { kSkip, kKeep };

  void skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }
  bool at(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool take(char c) {
    skip_blanks();
    if (!at(c)) return false;
    ++at_;
    return true;
  }
  Status expect(char c, Blanks blanks = Blanks::kSkip) {
    if (blanks == Blanks::kSkip) skip_blanks();
    if (!at(c)) return wrong(concat("'", std::string(1, c), "'"));
    ++at_;
    return Status::ok();
  }
  Status at_end() {
    skip_blanks();
    return at_ == text_.size() ? Status::ok() : wrong("the end");
  }
  Status wrong(std::string_view expected) const {
    return invalid_argument(concat("expected ", expected, " at character ", at_,
                                   " of the JSON text",
                                   at_ < text_.size() ? "" : ", which ends there"));
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Result<std::map<std::string, Strings>> parse_json_object(std::string_view text) {
  return JsonReader(text).object();
}

Result<Strings> parse_json_strings(std::string_view text) { return JsonReader(text).strings(); }

}  // namespace hvd
