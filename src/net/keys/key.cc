#include "net/keys/key.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>

#include "base/fd.h"
#include "base/parse.h"
#include "base/text.h"
#include "net/keys/hmac.h"

namespace hvd::net {
namespace {

// Longer than any key, so that a file that is too long is noticed.
constexpr size_t kMostContentBytes = 256;

// A buffer that is wiped when it goes.
struct Content {
  std::array<uint8_t, kMostContentBytes> bytes{};
  size_t size = 0;
  Content() = default;
  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;
  ~Content() { wipe(bytes); }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes.data()), size}; }
};

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<Key> parse_hex(std::string_view digits) {
  if (digits.size() != 2 * kKeyBytes) return std::nullopt;
  std::array<uint8_t, kKeyBytes> bytes;
  for (size_t i = 0; i < kKeyBytes; ++i) {
    const int high = hex_digit(digits[2 * i]), low = hex_digit(digits[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes[i] = static_cast<uint8_t>(high << 4 | low);
  }
  const Key key(bytes);
  wipe(bytes);
  return key;
}

// False: nothing came in time.
bool wait_readable(int fd, Deadline deadline) {
  while (!deadline.passed()) {
    pollfd item{fd, POLLIN, 0};
    const auto left = deadline.remaining(std::chrono::hours(1));
    const timespec span{static_cast<time_t>(left.count() / 1'000'000'000),
                        static_cast<long>(left.count() % 1'000'000'000)};
    if (ppoll(&item, 1, &span, nullptr) > 0) return true;
  }
  return false;
}

Status read_file(int fd, Content& content) {
  while (content.size < content.bytes.size()) {
    const ssize_t got =
        pread(fd, content.bytes.data() + content.size, content.bytes.size() - content.size,
              static_cast<off_t>(content.size));
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_status("cannot read", errno);
    content.size += static_cast<size_t>(got);
  }
  return Status::ok();
}

// The writer may keep its end open, so no end of the stream is waited for.
Status read_pipe(int fd, Content& content, Deadline deadline) {
  while (content.size < kKeyBytes) {
    if (!wait_readable(fd, deadline)) {
      return Status(StatusCode::kTimedOut,
                    concat("no key came in time, got ", content.size, " bytes of ", kKeyBytes));
    }
    const ssize_t got = read(fd, content.bytes.data() + content.size, kKeyBytes - content.size);
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_status("cannot read", errno);
    content.size += static_cast<size_t>(got);
  }
  return Status::ok();
}

Status check_owner(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return errno_status("cannot be looked at", errno);
  if (!S_ISREG(info.st_mode)) return precondition_error("expected a regular file");
  if (info.st_uid != geteuid()) {
    return precondition_error(
        concat("expected a file of user ", geteuid(), ", it belongs to user ", info.st_uid));
  }
  if ((info.st_mode & 077) != 0) {
    char mode[8];
    std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(info.st_mode & 07777));
    return precondition_error(concat("others may read or write it: expected mode 0600, got ", mode,
                                     "; run chmod 600 on it, and make a new key if it was seen"));
  }
  return Status::ok();
}

}  // namespace

Key::Key(std::span<const uint8_t, kKeyBytes> bytes) {
  std::copy(bytes.begin(), bytes.end(), bytes_.begin());
}

Key::~Key() { wipe(bytes_); }

Status fill_random(std::span<uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_status("random numbers", errno);
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
  return Status::ok();
}

Result<Key> Key::random() {
  std::array<uint8_t, kKeyBytes> bytes;
  HVD_TRY(fill_random(bytes));
  const Key key(bytes);
  wipe(bytes);
  return key;
}

Result<Key> Key::parse(std::string_view content) {
  if (content.size() == kKeyBytes) {
    return Key(std::span<const uint8_t, kKeyBytes>(reinterpret_cast<const uint8_t*>(content.data()),
                                                   kKeyBytes));
  }
  if (auto key = parse_hex(trim(content))) return *std::move(key);
  return invalid_argument(concat("expected ", kKeyBytes, " bytes or ", 2 * kKeyBytes,
                                 " hexadecimal digits, got ",
                                 content.size() >= kMostContentBytes ? "more than " : "",
                                 std::min(content.size(), kMostContentBytes), " bytes"));
}

Result<Key> Key::from_file(const std::string& path) {
  const std::string who = concat("key file '", path, "'");
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd.valid()) return errno_status(who, errno);
  if (const Status owner = check_owner(fd.get()); !owner) return blame(who, owner);
  Content content;
  if (const Status read = read_file(fd.get(), content); !read) return blame(who, read);
  auto key = parse(content.text());
  if (!key) return blame(who, key.status());
  return key;
}

Result<Key> Key::from_descriptor(int fd, Deadline deadline) {
  const std::string who = concat("key from descriptor ", fd);
  if (fcntl(fd, F_GETFD) < 0) {
    return blame(who, precondition_error("it is not open; was it closed by a program between "
                                         "horovodrun and this one?"));
  }
  Content content;
  const bool is_file = lseek(fd, 0, SEEK_CUR) >= 0 || errno != ESPIPE;
  const Status read = is_file ? read_file(fd, content) : read_pipe(fd, content, deadline);
  if (!read) return blame(who, read);
  auto key = parse(content.text());
  if (!key) return blame(who, key.status());
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  return key;
}

Key Key::derive(std::string_view label, std::span<const uint8_t> salt) const {
  Digest digest =
      hmac_sha256(bytes_, {{reinterpret_cast<const uint8_t*>(label.data()), label.size()}, salt});
  const Key key(digest);
  wipe(digest);
  return key;
}

}  // namespace hvd::net
