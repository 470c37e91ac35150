// use.h - what one operation knows about its device. Made by the submitting thread, then owned by
// the operation. Never blocks.
#pragma once

#include "device/stream.h"

namespace hvd::device {

struct Use {
  int device = -1;
  StreamHandle stream = nullptr;  // the caller's, when it submitted
  Event ready;                    // inputs may be read, outputs written, after this
  Event done;                     // results are there after this; not set: they are there already

  // Records `ready` on the caller's stream. PRECONDITION_ERROR: the stream is being captured.
  static Result<Use> begin(int device, StreamHandle stream);
  // Records `ready` once more, on the same stream: what it has got since then counts as well.
  Status renew();
  // Work that `stream` gets from now on finds the results.
  Status order(StreamHandle stream) const;
};

}  // namespace hvd::device
