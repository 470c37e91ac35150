// near_word.h - what somebody perhaps meant to write. Pure; any thread.
#pragma once

#include <span>
#include <string_view>

namespace hvd::launch {

// The known word nearest to `word`, if it is near enough to be worth a guess; else empty.
std::string_view near_word(std::string_view word, std::span<const std::string_view> known);

}  // namespace hvd::launch
