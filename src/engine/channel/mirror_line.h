// mirror_line.h - the way of a channel to the members of other hosts; nothing where all are here.
#pragma once

#include "mirror/mirror.h"

namespace hvd::engine {

struct MirrorLine {
  mirror::Mirror* mirror = nullptr;
  mirror::MirroredChannel* channel = nullptr;

  bool is_open() const { return channel != nullptr; }
  // Sends what is new.
  void flush() const {
    if (channel != nullptr) mirror->flush(*channel);
  }
  // Nothing more is sent or taken.
  void close() const {
    if (channel != nullptr) mirror->close(*channel);
  }
};

}  // namespace hvd::engine
