// json_text.h - strings as JSON literals. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace hvd::trace {

// Appends `text` in quotes. Names come from users: control characters are escaped, and each byte
// that is not part of valid UTF-8 becomes U+FFFD, so the result is always valid JSON.
void append_json_string(std::string& out, std::string_view text);

}  // namespace hvd::trace
