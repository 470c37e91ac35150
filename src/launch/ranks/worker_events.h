// worker_events.h - what happens to workers, wherever they run, told to whoever looks after them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/failure_note.h"
#include "launch/os/exit_status.h"

namespace hvd::launch {

enum class OutputStream : uint8_t { kOut = 0, kErr = 1 };

struct WorkerExit {
  int32_t rank = 0;
  ExitStatus status = {};
  bool was_asked = false;  // somebody had asked it to end before it was on its way out
  std::optional<FailureNote> note = {};  // that it left, before it was asked to end
};

// A file that a rank of horovod.run leaves for whoever called it, in pieces.
enum class RunFile : uint8_t { kResult = 0, kFailure = 1 };
struct FilePiece {
  int32_t rank = 0;
  RunFile file = RunFile::kResult;
  std::string_view bytes;
  bool is_last = false;
};

class WorkerEvents {
 public:
  virtual ~WorkerEvents() = default;
  virtual void on_started(int32_t rank, int32_t pid) = 0;
  virtual void on_output(int32_t rank, OutputStream stream, std::string_view bytes) = 0;
  virtual void on_output_end(int32_t rank, OutputStream stream) = 0;
  // After the output that the rank wrote before it ended, as far as that has come.
  virtual void on_exit(const WorkerExit& exit) = 0;
  // One message of a worker to the launcher of an elastic job (elastic/message.h).
  virtual void on_message(int32_t rank, std::string_view bytes) {
    static_cast<void>(rank), static_cast<void>(bytes);
  }
  virtual void on_file(const FilePiece& piece) { static_cast<void>(piece); }
  // An agent's answer to a question that only some ask (doctor.h); the kind is a FrameKind.
  virtual void on_answer(std::string_view host, uint8_t kind, std::string_view payload) {
    static_cast<void>(host), static_cast<void>(kind), static_cast<void>(payload);
  }
};

}  // namespace hvd::launch
