// segment.h - memory that several processes map. It has no name in any file system: the descriptor
// is handed to peers over a socket, so nothing is left behind however the job ends. Sparse: only
// pages that are touched cost memory. May block while pages are reserved.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/fd.h"
#include "base/status.h"

namespace hvd::shm {

class Segment {
 public:
  Segment() = default;
  // A memfd, sealed so that nobody can change its size; without that, an unlinked file in /dev/shm
  // or /tmp.
  static Result<Segment> create(size_t bytes);
  // Maps what a peer created. CORRUPTED if it has another size.
  static Result<Segment> adopt(UniqueFd fd, size_t bytes);
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  ~Segment();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  int fd() const { return fd_.get(); }
  bool contains(const void* address, size_t length) const {
    const auto at = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(data_);
    return at <= bytes_ && length <= bytes_ - at;  // below the segment `at` wraps to a huge number
  }

  // Reserves the pages now, so that a full file system is an error here and not a SIGBUS later.
  Status commit(size_t offset, size_t length) const;
  // The same, but only where the file system has a size limit of its own; elsewhere pages come when
  // touched.
  Status commit_if_limited(size_t offset, size_t length) const;
  // The memory stays where it is until the process ends, even when this object goes. Any thread.
  void leave_mapped() { stays_mapped_.store(true, std::memory_order_relaxed); }
  // Gives pages back; they read as zero afterwards.
  Status discard(size_t offset, size_t length) const;

 private:
  UniqueFd fd_;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  std::atomic<bool> stays_mapped_{false};
};

}  // namespace hvd::shm
