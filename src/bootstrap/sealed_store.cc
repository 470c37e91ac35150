#include "bootstrap/sealed_store.h"

#include <algorithm>
#include <span>

#include "base/text.h"
#include "net/keys/aead.h"

namespace hvd::bootstrap {
namespace {

constexpr size_t kFrontBytes = sizeof(ValueSalt) + net::kTagBytes;
constexpr net::AeadNonce kOnlyNonce{};  // a key seals one value

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
std::span<uint8_t> bytes_in(std::string& text, size_t from) {
  return {reinterpret_cast<uint8_t*>(text.data()) + from, text.size() - from};
}

// The salt has a fixed size, so the two are one text in one way only.
net::Key key_of_value(const net::Key& key, std::span<const uint8_t> salt, std::string_view name) {
  std::string bound(reinterpret_cast<const char*>(salt.data()), salt.size());
  bound += name;
  return key.derive("horovod value", bytes_of(bound));
}

}  // namespace

std::string seal_value(const net::Key& key, std::string_view name, const ValueSalt& salt,
                       std::string_view value) {
  std::string out(kFrontBytes, '\0');
  std::copy(salt.begin(), salt.end(), out.begin());
  out += value;
  const net::Tag tag = net::seal(key_of_value(key, salt, name), kOnlyNonce, bytes_of(name),
                                 bytes_in(out, kFrontBytes));
  std::copy(tag.begin(), tag.end(), out.begin() + sizeof(ValueSalt));
  return out;
}

Result<std::string> unseal_value(const net::Key& key, std::string_view name,
                                 std::string_view bytes) {
  if (bytes.size() >= kFrontBytes) {
    net::Tag tag;
    std::copy_n(bytes.begin() + sizeof(ValueSalt), tag.size(), tag.begin());
    std::string value(bytes.substr(kFrontBytes));
    const net::Key own = key_of_value(key, bytes_of(bytes.substr(0, sizeof(ValueSalt))), name);
    if (net::unseal(own, kOnlyNonce, bytes_of(name), bytes_in(value, 0), tag)) return value;
  }
  return corrupted(concat("'", name, "' in the rendezvous store (", bytes.size(),
                          " bytes) was not left there by a process that has the key of this job"));
}

SealedStore::SealedStore(store::Store& below, const net::Key& key)
    : below_(below), key_(key.derive("horovod roster", {})) {}

Status SealedStore::set(std::string_view key, std::string_view value, Deadline deadline) {
  ValueSalt salt;
  HVD_TRY(net::fill_random(salt));
  return below_.set(key, seal_value(key_, key, salt, value), deadline);
}

Result<std::string> SealedStore::get(std::string_view key, Deadline deadline) {
  HVD_TRY_ASSIGN(const std::string bytes, below_.get(key, deadline));
  return unseal_value(key_, key, bytes);
}

}  // namespace hvd::bootstrap
