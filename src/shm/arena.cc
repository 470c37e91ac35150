#include "shm/arena.h"

#include <cstring>

#include "base/bytes.h"
#include "base/text.h"

namespace hvd::shm {
namespace {

// Buffers of different ranks at the same offset must not be a large power of two apart: measured to
// be several times slower. Each buffer is followed by an odd number of spare pages.
constexpr size_t kStagger = kPageBytes + Arena::kAlignment;

}  // namespace

Result<std::byte*> Arena::alloc(size_t bytes) {
  if (bytes == 0) return invalid_argument("buffer alloc: 0 bytes asked for");
  if (bytes > bytes_) {
    return Status(
        StatusCode::kOutOfMemory,
        concat("buffer alloc: ", bytes, " bytes asked for, the shared arena of a rank has ", bytes_,
               " (HOROVOD_SHM_BUFFER_BYTES)"));
  }
  const size_t need = align_up(bytes + kStagger, kPageBytes);
  size_t at = 0;
  {
    MutexLock lock(mutex_);
    for (const auto& [offset, length] : used_) {
      if (offset - at >= need) break;
      at = offset + length;
    }
    if (need > bytes_ || at > bytes_ - need) {
      return Status(StatusCode::kOutOfMemory,
                    concat("buffer alloc: no room for ", bytes, " bytes in the shared arena of ",
                           bytes_, " bytes (HOROVOD_SHM_BUFFER_BYTES)"));
    }
    used_[at] = need;
  }
  if (Status status = segment_.commit(offset_ + at, need); !status) {
    MutexLock lock(mutex_);
    used_.erase(at);
    return status;
  }
  return segment_.data() + offset_ + at;
}

bool Arena::has_buffers() const {
  MutexLock lock(mutex_);
  return !used_.empty();
}

void Arena::forget(const void* data) {
  MutexLock lock(mutex_);
  used_.erase(offset_of(data));
}

Status Arena::free(void* data) {
  size_t length = 0;
  const bool inside = segment_.contains(data, 1);
  const size_t at = inside ? offset_of(data) : 0;
  {
    MutexLock lock(mutex_);
    const auto found = inside ? used_.find(at) : used_.end();
    if (found == used_.end())
      return invalid_argument("buffer free: not the start of a shared buffer");
    length = found->second;
  }
  // Discard first: whoever gets this range next must find zeros.
  const Status status = segment_.discard(offset_ + at, length);
  MutexLock lock(mutex_);
  used_.erase(at);
  return status;
}

bool Arena::contains(const void* data, size_t length) const {
  if (!segment_.contains(data, length)) return false;
  const auto* address = static_cast<const std::byte*>(data);
  if (address < segment_.data() + offset_ || offset_of(data) >= bytes_) return false;
  const size_t at = offset_of(data);
  MutexLock lock(mutex_);
  auto next = used_.upper_bound(at);
  if (next == used_.begin()) return false;
  const auto& [offset, bytes] = *std::prev(next);
  return at - offset < bytes && length <= bytes - (at - offset);
}

}  // namespace hvd::shm
