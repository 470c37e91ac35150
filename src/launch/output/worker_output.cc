#include "launch/output/worker_output.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>

#include "base/text.h"

namespace hvd::launch {
namespace {

// Colours that can be read on light and dark backgrounds; neighbours differ.
constexpr std::array<int, 6> kColours = {36, 35, 32, 34, 33, 31};

std::string coloured(int32_t rank, const std::string& label) {
  return concat("\x1b[", kColours[static_cast<size_t>(rank) % kColours.size()], "m", label,
                "\x1b[0m");
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (size_t at = text.find(from); at != std::string_view::npos; at = text.find(from)) {
    out += text.substr(0, at);
    out += to;
    text.remove_prefix(at + from.size());
  }
  return out += text;
}

}  // namespace

WorkerOutput::WorkerOutput(Settings settings)
    : label_(
          line_label(settings.rank, settings.stream == OutputStream::kOut ? "stdout" : "stderr")),
      coloured_label_(settings.style == LabelStyle::kColoured ? coloured(settings.rank, label_)
                                                              : ""),
      prefixer_(coloured_label_.empty() ? label_ : coloured_label_),
      file_(std::move(settings.file)),
      stamp_(settings.stamp) {}

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

void WorkerOutput::emit(const std::string& lines, Console& console, OutputTail& tail) const {
  console.append(lines);
  // The report may go elsewhere than the output.
  tail.append(coloured_label_.empty() ? lines : replace_all(lines, coloured_label_, label_));
}

void WorkerOutput::feed(std::string_view bytes, Console& console, OutputTail& tail) {
  write_file(bytes);
  std::string lines;
  prefixer_.feed(bytes, current_stamp(), lines);
  emit(lines, console, tail);
}

void WorkerOutput::finish(Console& console, OutputTail& tail) {
  std::string lines;
  prefixer_.finish(current_stamp(), lines);
  emit(lines, console, tail);
  file_.reset();
}

}  // namespace hvd::launch
