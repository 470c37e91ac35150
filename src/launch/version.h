// version.h - what `horovodrun --version` prints; equal to the project version of the build.
#pragma once

namespace hvd::launch {

inline constexpr char kVersion[] = "1.0.0";

}  // namespace hvd::launch
