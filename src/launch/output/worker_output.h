// worker_output.h - one stream of one rank on its way: bytes -> lines -> console, file, tail.
// One thread; never blocks except for the file system.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "launch/output/console.h"
#include "launch/output/line_prefixer.h"
#include "launch/output/output_tail.h"
#include "launch/ranks/worker_events.h"

namespace hvd::launch {

enum class LineStamp { kNone, kTime };
enum class LabelStyle { kPlain, kColoured };

class WorkerOutput {
 public:
  struct Settings {
    int32_t rank;
    OutputStream stream;
    UniqueFd file;  // copy of the raw bytes; may be invalid
    LineStamp stamp;
    LabelStyle style;
  };
  explicit WorkerOutput(Settings settings);

  void feed(std::string_view bytes, Console& console, OutputTail& tail);
  // The stream has ended: finishes the last line. Doing it again does no harm.
  void finish(Console& console, OutputTail& tail);

  // errno of the first failed write to the file, or 0
  int file_error() const { return file_error_; }

 private:
  void emit(const std::string& lines, Console& console, OutputTail& tail) const;
  void write_file(std::string_view bytes);
  std::string current_stamp() const;

  std::string label_;
  std::string coloured_label_;  // empty: plain
  LinePrefixer prefixer_;
  UniqueFd file_;
  LineStamp stamp_;
  int file_error_ = 0;
};

}  // namespace hvd::launch
