#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string_view>

namespace hvd {
namespace {

// All options in one word, so that a line never sees half of a change.
constexpr uint64_t pack(const LogOptions& options) {
  return uint64_t{static_cast<uint32_t>(options.rank)} << 32 | uint64_t{options.hide_time} << 8 |
         static_cast<uint64_t>(options.level);
}
LogOptions unpack(uint64_t word) {
  return {.level = static_cast<LogLevel>(word & 0xff),
          .hide_time = (word >> 8 & 1) != 0,
          .rank = static_cast<int>(static_cast<uint32_t>(word >> 32))};
}

// Publishes nothing but its own value, so relaxed is enough.
std::atomic<uint64_t> options_word{pack(LogOptions{})};

void append_time(std::string& line) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  const std::time_t seconds = micros / 1'000'000;
  std::tm local{};
  localtime_r(&seconds, &local);
  char text[64];
  const size_t length = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  line.append(text, length);
  std::snprintf(text, sizeof text, ".%06d: ", static_cast<int>(micros % 1'000'000));
  line += text;
}

std::string_view last_component(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);  // npos + 1 is 0
}

// One write per line keeps lines of several ranks whole on a shared terminal or pipe; the loop only
// finishes what a signal or a full pipe cut off. A log that cannot be written is not worth failing
// for.
void write_whole(int fd, std::string_view line) {
  while (!line.empty()) {
    const ssize_t count = ::write(fd, line.data(), line.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    line.remove_prefix(static_cast<size_t>(count));
  }
}

}  // namespace

void set_log_options(const LogOptions& options) {
  options_word.store(pack(options), std::memory_order_relaxed);
}

bool log_enabled(LogLevel level) {
  return level >= unpack(options_word.load(std::memory_order_relaxed)).level;
}

void write_log(LogLevel level, const char* file, int line, const std::string& text) {
  const LogOptions options = unpack(options_word.load(std::memory_order_relaxed));
  const int saved_errno = errno;  // a caller may log before it looks at errno
  std::string out = "[";
  if (!options.hide_time) append_time(out);
  out += concat("TDIWEF"[static_cast<int>(level)], ' ', last_component(file), ':', line, "] ");
  if (options.rank >= 0) out += concat('[', options.rank, "]: ");
  out += text;
  out += '\n';
  write_whole(level <= LogLevel::kInfo ? STDOUT_FILENO : STDERR_FILENO, out);
  errno = saved_errno;
}

}  // namespace hvd
