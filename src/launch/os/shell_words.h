// shell_words.h - words as a POSIX shell reads them. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hvd::launch {

// One word, quoted only where it must be, as Python's shlex.quote writes it.
std::string shell_quote(std::string_view word);
std::string shell_join(std::span<const std::string> words);

// Splits at blanks; quotes and backslashes keep them. Nothing is expanded.
Result<std::vector<std::string>> shell_split(std::string_view text);

}  // namespace hvd::launch
