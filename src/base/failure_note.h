// failure_note.h - why the job of a worker failed, left for whoever started the worker: a memory
// file that the worker inherits. The worker writes it when its program is told of the failure, so
// before the program can end because of it; the launcher reads it to tell the rank that failed
// first from those that noticed.
// Any thread; never blocks. A reader checks all of it, since any program may write there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/status.h"

namespace hvd {

inline constexpr char kFailureNoteVariable[] = "HOROVOD_FAILURE_NOTE";
inline constexpr size_t kMaxFailureTextBytes = 1024;  // longer ones are cut

struct FailureNote {
  int32_t rank = -1;  // whose fault it is, as far as the writer knows
  StatusCode code = StatusCode::kUnknownError;
  std::string text = {};  // of the status
  bool operator==(const FailureNote&) const = default;
};

// The launcher's side. Close-on-exec until the worker's fork.
Result<UniqueFd> make_failure_note();
// Value of the variable that names the file to the worker.
std::string failure_note_place(int fd);
// None: nothing was written, or not by FailureNoteWriter.
std::optional<FailureNote> read_failure_note(int fd);

// The worker's side.
class FailureNoteWriter {
 public:
  FailureNoteWriter() = default;  // nobody wants to know
  // A place that is not understood is none.
  explicit FailureNoteWriter(std::string_view place);

  // Without effect if the descriptor is not the launcher's file (any more): a program that closes
  // what it does not know may have opened something else under that number.
  void write(const FailureNote& note) const;
  void clear() const;

 private:
  bool is_ours() const;

  int fd_ = -1;
  uint64_t device_ = 0;
  uint64_t inode_ = 0;
};

}  // namespace hvd
