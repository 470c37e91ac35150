// host_identity.h - tells hosts apart: equal for processes that can share memory and find each
// other's abstract sockets, different for everything else. Machine and boot id alone are not
// enough, since all containers and network namespaces of a machine have the same. Any thread; reads
// /proc.
#pragma once

#include <string>

namespace hvd::bootstrap {

// `hostname` is the name the launcher uses (Topology::hostname): hosts that it tells apart are
// apart. A text of 64 hexadecimal digits.
std::string host_identity(const std::string& hostname);

}  // namespace hvd::bootstrap
