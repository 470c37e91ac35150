#include "launch/os/process_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdint>

#include "base/fd.h"
#include "base/text.h"

namespace hvd::launch {
namespace {

// From the kernel's include/linux/sched.h; part of what `ps -o flags` shows, so they stay.
constexpr uint64_t kExiting = 0x4;
constexpr uint64_t kDumpedCore = 0x200;
constexpr uint64_t kKilledBySignal = 0x400;
constexpr int kFieldsBeforeFlags = 6;  // after the name: state ppid pgrp session tty tpgid

}  // namespace

bool is_dying_stat(std::string_view stat) {
  // The name, in parentheses, may hold anything, even ") ".
  const size_t name_end = stat.rfind(") ");
  if (name_end == std::string_view::npos) return false;
  std::string_view rest = stat.substr(name_end + 2);
  for (int field = 0; field < kFieldsBeforeFlags; ++field) {
    const size_t space = rest.find(' ');
    if (space == std::string_view::npos) return false;
    rest.remove_prefix(space + 1);
  }
  uint64_t flags = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), flags);
  return (flags & (kExiting | kDumpedCore | kKilledBySignal)) != 0;
}

bool is_dying(pid_t pid) {
  const UniqueFd file(::open(concat("/proc/", pid, "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return false;
  std::array<char, 1024> text{};
  const ssize_t count = ::read(file.get(), text.data(), text.size());
  return count > 0 && is_dying_stat({text.data(), static_cast<size_t>(count)});
}

}  // namespace hvd::launch
