#include "bootstrap/signed_store.h"

#include <span>

#include "base/text.h"
#include "net/keys/hmac.h"
#include "net/packing.h"

namespace hvd::bootstrap {
namespace {

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

net::Digest proof_of(const net::Key& key, std::string_view name, std::string_view value) {
  std::string counted;
  net::put_text(counted, name);
  return net::hmac_sha256(key.bytes(), {bytes_of(counted), bytes_of(value)});
}

}  // namespace

std::string sign(const net::Key& key, std::string_view name, std::string_view value) {
  const net::Digest proof = proof_of(key, name, value);
  std::string out(reinterpret_cast<const char*>(proof.data()), proof.size());
  out += value;
  return out;
}

Result<std::string> check_signed(const net::Key& key, std::string_view name,
                                 std::string_view bytes) {
  constexpr size_t kProofBytes = sizeof(net::Digest);
  const std::string_view proof = bytes.substr(0, kProofBytes);
  if (proof.size() == kProofBytes) {
    const std::string_view value = bytes.substr(kProofBytes);
    if (net::equal_in_constant_time(proof_of(key, name, value), bytes_of(proof))) {
      return std::string(value);
    }
  }
  return corrupted(concat("'", name, "' in the rendezvous store (", bytes.size(),
                          " bytes) was not left there by a process that has the key of this job"));
}

SignedStore::SignedStore(store::Store& below, const net::Key& key)
    : below_(below), key_(key.derive("horovod roster", {})) {}

Status SignedStore::set(std::string_view key, std::string_view value, Deadline deadline) {
  return below_.set(key, sign(key_, key, value), deadline);
}

Result<std::string> SignedStore::get(std::string_view key, Deadline deadline) {
  HVD_TRY_ASSIGN(const std::string bytes, below_.get(key, deadline));
  return check_signed(key_, key, bytes);
}

}  // namespace hvd::bootstrap
