#include "launch/output/output_tail.h"

#include <algorithm>

namespace hvd::launch {

void OutputTail::append(std::string_view prefixed_lines) {
  if (prefixed_lines.size() >= kMaxBytes) {
    cut_ = cut_ || !text_.empty() || prefixed_lines.size() > kMaxBytes;
    text_ = prefixed_lines.substr(prefixed_lines.size() - kMaxBytes);
    return;
  }
  text_ += prefixed_lines;
  // Twice the size before cutting: otherwise every short line would move the whole text.
  if (text_.size() > 2 * kMaxBytes) {
    text_.erase(0, text_.size() - kMaxBytes);
    cut_ = true;
  }
}

std::vector<std::string> OutputTail::last_lines(size_t most) const {
  std::vector<std::string> lines;
  std::string_view rest = text_;
  if (rest.size() > kMaxBytes) rest.remove_prefix(rest.size() - kMaxBytes);
  const bool starts_inside = cut_ || rest.size() < text_.size();
  while (lines.size() < most) {
    const size_t last = rest.find_last_not_of("\r\n");
    if (last == std::string_view::npos) break;
    rest = rest.substr(0, last + 1);
    const size_t before = rest.find_last_of("\r\n");
    // A first line that lost its beginning still says more than nothing.
    const bool beheaded = before == std::string_view::npos && starts_inside;
    const std::string_view line = before == std::string_view::npos ? rest : rest.substr(before + 1);
    lines.push_back(beheaded ? "..." + std::string(line) : std::string(line));
    if (before == std::string_view::npos) break;
    rest = rest.substr(0, before);
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

}  // namespace hvd::launch
