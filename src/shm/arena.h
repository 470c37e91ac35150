// arena.h - first-fit allocation inside one rank's part of the segment, for buffers that peers may
// read and write in place. Only the owner allocates; peers see offsets. Thread-safe; may block
// (page faults).
#pragma once

#include <cstddef>
#include <map>

#include "base/status.h"
#include "base/thread_annotations.h"
#include "shm/segment.h"

namespace hvd::shm {

class Arena {
 public:
  static constexpr size_t kAlignment = 256;

  Arena(const Segment& segment, size_t offset, size_t bytes)
      : segment_(segment), offset_(offset), bytes_(bytes) {}

  // Zeroed, aligned to kAlignment.
  Result<std::byte*> alloc(size_t bytes) HVD_EXCLUDES(mutex_);
  Status free(void* data) HVD_EXCLUDES(mutex_);
  // True if [data, data + length) lies inside one live buffer.
  bool contains(const void* data, size_t length) const HVD_EXCLUDES(mutex_);
  bool has_buffers() const HVD_EXCLUDES(mutex_);
  // Like free(), but what lies there stays for peers that have not read it. Only when the job ends.
  void forget(const void* data) HVD_EXCLUDES(mutex_);
  // Offset of an address inside this arena.
  size_t offset_of(const void* data) const {
    return static_cast<size_t>(static_cast<const std::byte*>(data) - segment_.data()) - offset_;
  }

 private:
  const Segment& segment_;
  const size_t offset_;
  const size_t bytes_;
  mutable Mutex mutex_;
  std::map<size_t, size_t> used_ HVD_GUARDED_BY(mutex_);  // offset in the arena -> bytes
};

}  // namespace hvd::shm
