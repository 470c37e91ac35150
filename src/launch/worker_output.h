// worker_output.h - one stream of one worker on its way: pipe -> lines -> console, file, tail.
// One thread; read_some never blocks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "launch/console.h"
#include "launch/line_prefixer.h"
#include "launch/output_tail.h"

namespace hvd::launch {

enum class LineStamp { kNone, kTime };

class WorkerOutput {
 public:
  struct Source {
    int32_t rank;
    std::string_view stream;  // "stdout" or "stderr"
    UniqueFd pipe;            // read end, non-blocking
    UniqueFd file;            // copy of the raw bytes; may be invalid
    LineStamp stamp;
  };
  explicit WorkerOutput(Source source);

  bool is_open() const { return pipe_.valid(); }
  int poll_fd() const { return pipe_.get(); }

  // One read; at the end of the stream finishes the last line and closes.
  void read_some(Console& console, OutputTail& tail);

  // Takes what lies in the pipe now and closes it, although somebody may still hold the other end.
  void drain_and_close(Console& console, OutputTail& tail);

  int file_error() const {
    return file_error_;
  }  // errno of the first failed write to the file, or 0

 private:
  // True if there may be more to read at once.
  bool read_once(Console& console, OutputTail& tail);
  void close(Console& console, OutputTail& tail);
  void write_file(std::string_view bytes);
  std::string current_stamp() const;

  LinePrefixer prefixer_;
  UniqueFd pipe_;
  UniqueFd file_;
  LineStamp stamp_;
  int file_error_ = 0;
};

}  // namespace hvd::launch
