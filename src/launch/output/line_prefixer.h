// line_prefixer.h - cuts one stream of a worker into lines and puts its label before each.
// Pure; one thread. A line ends in \n, \r or \r\n and keeps its ending, so progress bars still
// move. What comes out is whole lines only: mixing the output of several streams can never mix
// inside a line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hvd::launch {

class LinePrefixer {
 public:
  // A longer line is cut with a newline, so that a stream without line ends cannot fill the memory.
  static constexpr size_t kMaxLineBytes = size_t{1} << 20;

  explicit LinePrefixer(std::string label) : label_(std::move(label)) {}

  // Appends to `out` the lines that `bytes` completes, each as stamp, label, text, line end.
  void feed(std::string_view bytes, std::string_view stamp, std::string& out);

  // The stream has ended: an unfinished last line gets a newline.
  void finish(std::string_view stamp, std::string& out);

 private:
  void emit(std::string_view text, std::string_view stamp, std::string& out);

  std::string label_;
  std::string partial_;
  bool after_return_ = false;  // the last byte was \r: a \n now belongs to the line already out
};

// "[3]<stdout>:"
std::string line_label(int rank, std::string_view stream);

}  // namespace hvd::launch
