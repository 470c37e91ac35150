// help.h - the text of `horovodrun --help`, made from the option table. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>

namespace hvd::launch {

inline constexpr size_t kDefaultHelpWidth = 100;

// Lines of at most `width` columns (60 at least).
std::string help_text(size_t width = kDefaultHelpWidth);

}  // namespace hvd::launch
