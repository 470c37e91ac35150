// printable.h - text of others for a terminal or a log: control characters, which a terminal would
// obey, are written out. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace hvd {

// Keeps line feeds and tabs; ESC becomes "\x1b", and so on, also the C1 controls of UTF-8.
std::string printable(std::string_view text);

}  // namespace hvd
