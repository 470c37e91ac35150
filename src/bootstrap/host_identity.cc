#include "bootstrap/host_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/text.h"
#include "net/cipher/sha256.h"

namespace hvd::bootstrap {
namespace {

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string namespace_number(const char* path) {
  struct stat info {};
  return stat(path, &info) == 0 ? concat(info.st_dev, ":", info.st_ino) : "";
}

}  // namespace

std::string host_identity(const std::string& hostname) {
  char node[256] = {};
  if (gethostname(node, sizeof node - 1) != 0) node[0] = '\0';
  const std::string text =
      concat(first_line("/proc/sys/kernel/random/boot_id"), "\n", first_line("/etc/machine-id"),
             "\n", std::string_view(node), "\n", hostname, "\n",
             namespace_number("/proc/self/ns/net"), "\n", namespace_number("/proc/self/ns/uts"));
  const net::Digest digest =
      net::sha256({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  std::string out;
  for (const uint8_t byte : digest) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

}  // namespace hvd::bootstrap
