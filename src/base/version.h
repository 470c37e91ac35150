// version.h - the version of the project, as the build knows it. Any thread.
#pragma once

namespace hvd {

const char* version_text();

}  // namespace hvd
