// signed_store.h - a Store whose values carry a proof that a process of the job left them, under
// that very name. The store below may be anybody's: torch's, MPI's, one that is reached over a
// network which others change. One thread at a time; blocks as the store below.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/cipher/sha256.h"
#include "net/keys/key.h"
#include "store/store.h"

namespace hvd::bootstrap {

class SignedStore final : public store::Store {
 public:
  SignedStore(store::Store& below, const net::Key& key);

  Status set(std::string_view key, std::string_view value, Deadline deadline) override;
  // CORRUPTED when the value was left by somebody who does not have the key of the job, or for
  // another name.
  Result<std::string> get(std::string_view key, Deadline deadline) override;

 private:
  store::Store& below_;
  const net::Key key_;
};

// The proof, then the value. Pure.
std::string sign(const net::Key& key, std::string_view name, std::string_view value);
Result<std::string> check_signed(const net::Key& key, std::string_view name,
                                 std::string_view bytes);

}  // namespace hvd::bootstrap
