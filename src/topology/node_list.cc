#include "topology/node_list.h"

#include <algorithm>
#include <cstdint>

#include "base/parse.h"
#include "base/text.h"

namespace hvd::topology {
namespace {

constexpr size_t kMaxNodes = 65536;

Status bad_list(std::string_view text) {
  return invalid_argument(concat("expected a list of nodes such as n[1-3],m, got '", text, "'"));
}

// The end of the item that begins `text`: the first comma outside brackets.
size_t item_end(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') ++depth;
    if (text[i] == ']') --depth;
    if (text[i] == ',' && depth == 0) return i;
  }
  return text.size();
}

std::string padded(int64_t number, size_t width) {
  std::string digits = concat(number);
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  return digits;
}

// The names of one item; `prefix` is what stands before it.
Status expand_item(std::string_view prefix, std::string_view item, std::vector<std::string>& out) {
  const size_t open = item.find('[');
  if (open == std::string_view::npos) {
    out.push_back(concat(prefix, item));
    return out.size() <= kMaxNodes ? Status::ok() : bad_list(item);
  }
  const size_t close = item.find(']', open);
  if (close == std::string_view::npos) return bad_list(item);
  std::string_view ranges = item.substr(open + 1, close - open - 1);
  const std::string_view rest = item.substr(close + 1);
  while (!ranges.empty()) {
    const size_t comma = std::min(ranges.find(','), ranges.size());
    const std::string_view range = ranges.substr(0, comma);
    ranges.remove_prefix(std::min(comma + 1, ranges.size()));
    const size_t dash = range.find('-');
    const std::string_view first_text = range.substr(0, dash);
    const std::string_view last_text =
        dash == std::string_view::npos ? first_text : range.substr(dash + 1);
    const auto first = parse_integer(first_text, {0, INT32_MAX});
    const auto last = parse_integer(last_text, {0, INT32_MAX});
    if (!first || !last || *last < *first || *last - *first > int64_t{kMaxNodes}) {
      return bad_list(item);
    }
    for (int64_t number = *first; number <= *last; ++number) {
      HVD_TRY(expand_item(concat(prefix, item.substr(0, open), padded(number, first_text.size())),
                          rest, out));
    }
  }
  return Status::ok();
}

}  // namespace

Result<std::vector<std::string>> expand_nodelist(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const size_t end = item_end(text);
    if (end == 0) return bad_list(text);
    HVD_TRY(expand_item("", text.substr(0, end), names));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return names;
}

}  // namespace hvd::topology
