#include "shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/text.h"

namespace hvd::shm {
namespace {

Result<UniqueFd> open_anonymous_file() {
  UniqueFd fd(memfd_create("horovod", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd.valid()) return fd;
  const int memfd_error = errno;
  // Old kernels and strict sandboxes have no memfd. Neither file below ever has a name.
  for (const char* directory : {"/dev/shm", "/tmp"}) {
    fd.reset(open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (fd.valid()) return fd;
  }
  return errno_status(
      "shared memory: neither memfd_create nor an unnamed file in /dev/shm or /tmp works",
      memfd_error);
}

Result<std::byte*> map(int fd, size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (data == MAP_FAILED) {
    return errno_status(concat("shared memory: cannot map ", bytes, " bytes"), errno);
  }
  // A core dump of a crashed worker must not contain every rank's buffers.
  madvise(data, bytes, MADV_DONTDUMP);
  return static_cast<std::byte*>(data);
}

}  // namespace

Result<Segment> Segment::create(size_t bytes) {
  HVD_TRY_ASSIGN(UniqueFd fd, open_anonymous_file());
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return errno_status(concat("shared memory: cannot size a segment of ", bytes, " bytes"), errno);
  }
  // A rank that made it shorter would end all others with SIGBUS. Only a memfd can be sealed.
  (void)!fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return adopt(std::move(fd), bytes);
}

Result<Segment> Segment::adopt(UniqueFd fd, size_t bytes) {
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return errno_status("shared memory: fstat", errno);
  if (info.st_size < 0 || static_cast<uint64_t>(info.st_size) != bytes) {
    return corrupted(
        concat("shared memory: the segment has ", info.st_size, " bytes, expected ", bytes));
  }
  Segment segment;
  HVD_TRY_ASSIGN(segment.data_, map(fd.get(), bytes));
  segment.fd_ = std::move(fd);
  segment.bytes_ = bytes;
  return segment;
}

Segment::Segment(Segment&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  if (this != &other) {
    if (data_ != nullptr) munmap(data_, bytes_);
    fd_ = std::move(other.fd_);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

Segment::~Segment() {
  if (data_ != nullptr && !stays_mapped_.load(std::memory_order_relaxed)) munmap(data_, bytes_);
}

Status Segment::commit(size_t offset, size_t length) const {
  if (length == 0) return Status::ok();
  if (fallocate(fd_.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(length)) == 0 ||
      errno == EOPNOTSUPP || errno == EINTR) {
    return Status::ok();
  }
  return errno_status(concat("shared memory: cannot reserve ", length, " bytes"), errno);
}

Status Segment::commit_if_limited(size_t offset, size_t length) const {
  struct statfs info {};
  // The kernel's own mount behind memfd_create reports no blocks: it is limited by memory alone.
  if (fstatfs(fd_.get(), &info) == 0 && info.f_blocks == 0) return Status::ok();
  return commit(offset, length);
}

Status Segment::discard(size_t offset, size_t length) const {
  if (length == 0) return Status::ok();
  if (fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                static_cast<off_t>(length)) == 0) {
    return Status::ok();
  }
  return errno_status(concat("shared memory: cannot give back ", length, " bytes"), errno);
}

}  // namespace hvd::shm
