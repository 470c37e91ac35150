// sealed_store.h - a Store whose values only processes of the job can read, and that carry a proof
// that one of them left them, under that very name. The store below may be anybody's: torch's,
// MPI's, one that is reached over a network which others change. One thread at a time; blocks as
// the store below.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "net/keys/key.h"
#include "store/store.h"

namespace hvd::bootstrap {

class SealedStore final : public store::Store {
 public:
  SealedStore(store::Store& below, const net::Key& key);

  // A value is sealed afresh each time: the same one again is another one to the store below.
  Status set(std::string_view key, std::string_view value, Deadline deadline) override;
  // CORRUPTED when the value was left by somebody who does not have the key of the job, or for
  // another name.
  Result<std::string> get(std::string_view key, Deadline deadline) override;

 private:
  store::Store& below_;
  const net::Key key_;
};

// Random, and for one value only: together with its name it makes the key that seals it.
using ValueSalt = std::array<uint8_t, 16>;
// The salt, the proof, then the value, encrypted. Pure.
std::string seal_value(const net::Key& key, std::string_view name, const ValueSalt& salt,
                       std::string_view value);
Result<std::string> unseal_value(const net::Key& key, std::string_view name,
                                 std::string_view bytes);

}  // namespace hvd::bootstrap
