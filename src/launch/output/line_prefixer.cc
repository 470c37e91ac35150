#include "launch/output/line_prefixer.h"

#include <algorithm>

#include "base/text.h"

namespace hvd::launch {

std::string line_label(int rank, std::string_view stream) {
  return concat("[", rank, "]<", stream, ">:");
}

void LinePrefixer::emit(std::string_view text, std::string_view stamp, std::string& out) {
  out += stamp;
  out += label_;
  out += partial_;
  out += text;
  partial_.clear();
}

void LinePrefixer::feed(std::string_view bytes, std::string_view stamp, std::string& out) {
  if (bytes.empty()) return;
  size_t start = 0;
  if (after_return_ && bytes.front() == '\n') {
    out += '\n';
    start = 1;
  }
  after_return_ = bytes.back() == '\r';

  // Each position is searched again only after it has been passed: a pair of finds per line would
  // look at the whole buffer for every \r of a progress bar.
  size_t newline = bytes.find('\n', start);
  size_t carriage_return = bytes.find('\r', start);
  while (true) {
    size_t end = std::min(newline, carriage_return);
    if (end == std::string_view::npos) break;
    if (end == carriage_return && newline == end + 1) ++end;
    emit(bytes.substr(start, end + 1 - start), stamp, out);
    start = end + 1;
    if (newline != std::string_view::npos && newline < start) newline = bytes.find('\n', start);
    if (carriage_return != std::string_view::npos && carriage_return < start) {
      carriage_return = bytes.find('\r', start);
    }
  }

  std::string_view rest = bytes.substr(start);
  while (partial_.size() + rest.size() > kMaxLineBytes) {
    const size_t fits = kMaxLineBytes - partial_.size();
    emit(rest.substr(0, fits), stamp, out);
    out += '\n';
    rest.remove_prefix(fits);
  }
  partial_ += rest;
}

void LinePrefixer::finish(std::string_view stamp, std::string& out) {
  if (partial_.empty()) return;
  emit("\n", stamp, out);
}

}  // namespace hvd::launch
