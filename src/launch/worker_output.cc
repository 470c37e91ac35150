#include "launch/worker_output.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>

namespace hvd::launch {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;  // what a pipe holds by default
// Somebody who writes without end must not keep us in the last look.
constexpr int kMaxDrainReads = 32;

}  // namespace

WorkerOutput::WorkerOutput(Source source)
    : prefixer_(line_label(source.rank, source.stream)),
      pipe_(std::move(source.pipe)),
      file_(std::move(source.file)),
      stamp_(source.stamp) {}

std::string WorkerOutput::current_stamp() const {
  if (stamp_ == LineStamp::kNone) return {};
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 32> text{};
  const size_t size = std::strftime(text.data(), text.size(), "%a %b %e %H:%M:%S %Y", &local);
  return {text.data(), size};
}

void WorkerOutput::write_file(std::string_view bytes) {
  while (file_.valid() && !bytes.empty()) {
    const ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
    } else if (errno != EINTR) {
      file_error_ = errno;
      file_.reset();
    }
  }
}

bool WorkerOutput::read_once(Console& console, OutputTail& tail) {
  static std::array<char, kReadBytes> buffer;  // the launcher has one thread
  const ssize_t count = ::read(pipe_.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
  if (count <= 0) {
    close(console, tail);
    return false;
  }
  const std::string_view bytes(buffer.data(), static_cast<size_t>(count));
  write_file(bytes);
  std::string lines;
  prefixer_.feed(bytes, current_stamp(), lines);
  console.append(lines);
  tail.append(lines);
  return true;
}

void WorkerOutput::close(Console& console, OutputTail& tail) {
  std::string lines;
  prefixer_.finish(current_stamp(), lines);
  console.append(lines);
  tail.append(lines);
  pipe_.reset();
  file_.reset();
}

void WorkerOutput::read_some(Console& console, OutputTail& tail) { read_once(console, tail); }

void WorkerOutput::drain_and_close(Console& console, OutputTail& tail) {
  for (int reads = 0; is_open() && reads < kMaxDrainReads; ++reads) {
    if (!read_once(console, tail)) break;
  }
  if (is_open()) close(console, tail);
}

}  // namespace hvd::launch
