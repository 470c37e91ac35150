// key.h - the secret that the processes of a job share: 32 bytes. It is never printed, and wiped
// when the last copy goes. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "net/cipher/sha256.h"

namespace hvd::net {

inline constexpr size_t kKeyBytes = 32;

class Key {
 public:
  explicit Key(std::span<const uint8_t, kKeyBytes> bytes);
  Key(const Key&) = default;
  Key& operator=(const Key&) = default;
  ~Key();

  // From the kernel's random numbers.
  static Result<Key> random();
  // 32 bytes, or 64 hexadecimal digits and blanks. The file must be a regular one that belongs to
  // this user and that nobody else may read or write.
  static Result<Key> from_file(const std::string& path);
  // A memory file that the launcher left open, with content like a key file's, or a pipe with 32
  // bytes. A memory file can be read again (by a second init), a pipe cannot. The descriptor is
  // marked close-on-exec, since the programs that this process starts need no key.
  static Result<Key> from_descriptor(int fd, Deadline deadline);
  // Of 64 hexadecimal digits or 32 bytes, as they stand in a file or come out of a store.
  static Result<Key> parse(std::string_view content);

  // Another key that says nothing about this one: for a single job of those that share a key file.
  Key derive(std::string_view label, std::span<const uint8_t> salt) const;

  std::span<const uint8_t, kKeyBytes> bytes() const { return bytes_; }
  // Of keys that are both ours: the time it takes may depend on them.
  bool operator==(const Key&) const = default;

 private:
  std::array<uint8_t, kKeyBytes> bytes_;
};

// Fills `bytes` from the kernel's random numbers.
Status fill_random(std::span<uint8_t> bytes);

}  // namespace hvd::net
