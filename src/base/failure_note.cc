#include "base/failure_note.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/text.h"

namespace hvd {
namespace {

constexpr uint32_t kMagic = 0x6e76'6868;  // no program writes this by accident

struct Header {
  uint32_t magic;
  int32_t rank;
  int32_t code;
  uint32_t text_bytes;
};

// Takes "12" or "12:" off the front of `text`.
std::optional<uint64_t> take_number(std::string_view& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (text.starts_with(':')) text.remove_prefix(1);
  return value;
}

}  // namespace

Result<UniqueFd> make_failure_note() {
  UniqueFd file(::memfd_create("horovod-failure-note", MFD_CLOEXEC));
  if (!file.valid()) return errno_status("cannot make a memory file for failures", errno);
  return file;
}

std::string failure_note_place(int fd) {
  struct stat about {};
  if (::fstat(fd, &about) != 0) return {};
  return concat(fd, ":", about.st_dev, ":", about.st_ino);
}

std::optional<FailureNote> read_failure_note(int fd) {
  Header header{};
  std::array<char, kMaxFailureTextBytes> text;
  if (::pread(fd, &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header) ||
      header.magic != kMagic || header.text_bytes > text.size() || header.code <= 0 ||
      header.code > static_cast<int32_t>(kLastStatusCode)) {
    return std::nullopt;
  }
  const auto bytes = static_cast<ssize_t>(header.text_bytes);
  if (::pread(fd, text.data(), header.text_bytes, sizeof header) != bytes) return std::nullopt;
  return FailureNote{.rank = header.rank,
                     .code = static_cast<StatusCode>(header.code),
                     .text = std::string(text.data(), header.text_bytes)};
}

FailureNoteWriter::FailureNoteWriter(std::string_view place) {
  const auto fd = take_number(place);
  const auto device = take_number(place);
  const auto inode = take_number(place);
  if (!fd || *fd > INT32_MAX || !device || !inode || !place.empty()) return;
  fd_ = static_cast<int>(*fd);
  device_ = *device;
  inode_ = *inode;
}

bool FailureNoteWriter::is_ours() const {
  struct stat about {};
  return fd_ >= 0 && ::fstat(fd_, &about) == 0 && about.st_dev == device_ && about.st_ino == inode_;
}

void FailureNoteWriter::write(const FailureNote& note) const {
  if (!is_ours()) return;
  std::array<char, sizeof(Header) + kMaxFailureTextBytes> bytes;
  const size_t text_bytes = std::min(note.text.size(), kMaxFailureTextBytes);
  const Header header{.magic = kMagic,
                      .rank = note.rank,
                      .code = static_cast<int32_t>(note.code),
                      .text_bytes = static_cast<uint32_t>(text_bytes)};
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, note.text.data(), text_bytes);
  // Without it the launcher knows less, and says what it sees.
  (void)!::pwrite(fd_, bytes.data(), sizeof header + text_bytes, 0);
}

void FailureNoteWriter::clear() const {
  if (is_ours()) (void)!::ftruncate(fd_, 0);
}

}  // namespace hvd
