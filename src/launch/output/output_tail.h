// output_tail.h - the last lines a rank printed, for the report of its failure. Bounded. Pure; one
// thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hvd::launch {

class OutputTail {
 public:
  static constexpr size_t kMaxBytes = size_t{8} << 10;

  void append(std::string_view prefixed_lines);

  // Oldest first; without line ends and empty lines.
  std::vector<std::string> last_lines(size_t most) const;

 private:
  std::string text_;
  bool cut_ = false;  // text_ may start inside a line
};

}  // namespace hvd::launch
