// key_agreement.h - how ranks without a key file get the job's key through a store that everybody
// may read: each rank leaves a fresh public key, rank 0 leaves the job's key once for each rank,
// sealed for it alone. Whoever only reads the store learns nothing; whoever can write to it can
// take a rank's place (docs/decisions/0018). Blocks until the deadline, a little longer on ranks
// that wait for rank 0.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "net/keys/key.h"
#include "net/keys/x25519.h"
#include "store/store.h"

namespace hvd::bootstrap {

// Takes a value out of the store; stores that cannot do that have none. Never fails: what stays is
// of no use to anybody.
using Forget = std::function<void(const std::string& key)>;

class KeyAgreement {
 public:
  struct Self {
    int32_t rank = 0, size = 1;
    uint64_t epoch = 0;
    std::string hostname;
  };
  KeyAgreement(store::Store& store, Self self) : store_(store), self_(std::move(self)) {}

  // `given`: the key from this rank's environment, which must then be everybody's way.
  Result<net::Key> agree(const std::optional<net::Key>& given, Deadline deadline);
  // Once the roster is complete on this rank: every rank has the key.
  void clean_up(const Forget& forget) const;

 private:
  Result<net::Key> deal(Deadline deadline);
  Result<net::Key> receive(Deadline deadline);
  Result<std::string> seal_for_all(const net::KeyPair& own, const net::Key& key, Deadline deadline);
  Result<std::optional<std::string>> await_offer(int32_t rank, Deadline deadline);
  Status leave_offer(std::string_view offer, Deadline deadline);
  Result<net::Key> open_answer(std::string_view answer, const net::KeyPair& own) const;
  std::string name_of(std::string_view what) const;
  std::string offer_name(int32_t rank) const;

  store::Store& store_;
  Self self_;
};

// The job's key for one rank: as long as a key, and a proof of it.
inline constexpr size_t kSealedKeyBytes = net::kKeyBytes + 32;

// What the secret of one pair is bound to, so that a sealed key fits nobody else.
struct SealContext {
  uint64_t epoch = 0;
  int32_t rank = 0;  // for whom
  net::Point from{}, to{};
};
// Pure. The pair's secret is used for one key only, so that the pad is never used twice.
std::string seal_key(const net::Key& key, const net::Key& secret, const SealContext& context);
// CORRUPTED: it was sealed for somebody else, or changed.
Result<net::Key> open_key(std::string_view sealed, const net::Key& secret,
                          const SealContext& context);

}  // namespace hvd::bootstrap
