#include "base/version.h"

namespace hvd {

const char* version_text() { return HVD_VERSION_TEXT; }

}  // namespace hvd
