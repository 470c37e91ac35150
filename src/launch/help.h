// help.h - the text of `horovodrun --help`, made from the option table. Pure; any thread.
#pragma once

#include <string>

namespace hvd::launch {

std::string help_text();

}  // namespace hvd::launch
