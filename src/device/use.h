// use.h - what one operation knows about its device. Made by the submitting thread, then owned by
// the operation. Never blocks.
#pragma once

#include "device/stream.h"

namespace hvd::device {

struct Use {
  int device = -1;
  StreamHandle stream = nullptr;  // the caller's, when it submitted
  Event ready;                    // inputs may be read, outputs written, after this
  Event allocated;                // and outputs that were allocated later, after this; may be unset
  Event done;                     // results are there after this; not set: they are there already

  // Records `ready` on the caller's stream. PRECONDITION_ERROR: the stream is being captured.
  static Result<Use> begin(int device, StreamHandle stream);
  // Outputs were allocated just now: what the caller's stream has got since `begin` may still use
  // their memory. A stream that another thread cannot name, or that is being captured by now, is
  // left alone.
  Status note_allocation();
  // Work that `stream` gets from now on comes after what makes the memory ready.
  Status hold_back(StreamHandle stream) const;
  // Work that `stream` gets from now on finds the results.
  Status order(StreamHandle stream) const;
};

}  // namespace hvd::device
