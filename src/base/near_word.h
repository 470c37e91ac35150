// near_word.h - what somebody perhaps meant to write. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hvd {

// The known word nearest to `word`, if it is near enough to be worth a guess; else empty. '_' is as
// good as '-', and capitals as small letters.
std::string_view near_word(std::string_view word, std::span<const std::string_view> known);

// ": did you mean 'word'?", or nothing.
std::string near_word_text(std::string_view word, std::span<const std::string_view> known);

}  // namespace hvd
