#include "store/exchange_store.h"

#include "base/text.h"

namespace hvd::store {
namespace {

constexpr int32_t kTimeIsOver = 1;
// Enough for the roster of some tens of ranks; a larger value is asked for once more.
constexpr size_t kFirstBufferBytes = 16 << 10;
constexpr size_t kMostExchangedBytes = 256u << 20;

}  // namespace

Status ExchangeStore::set(std::string_view key, std::string_view value, Deadline) {
  const std::string name = concat(prefix_, key);
  const int32_t rc = callbacks_.set(callbacks_.context, name.c_str(), value.data(), value.size());
  if (rc == 0) return Status::ok();
  if (rc == kTimeIsOver) {
    return Status(StatusCode::kTimedOut, concat("store: setting '", name, "' took too long"));
  }
  return unknown_error(concat("store: setting '", name, "' failed with code ", rc));
}

Result<std::string> ExchangeStore::get(std::string_view key, Deadline deadline) {
  const std::string name = concat(prefix_, key);
  std::string buffer(kFirstBufferBytes, '\0');
  for (;;) {
    const Nanoseconds left = deadline.remaining(std::chrono::hours(24));
    size_t bytes = 0;
    const int32_t rc = callbacks_.get(callbacks_.context, name.c_str(), buffer.data(),
                                      buffer.size(), &bytes, left.count());
    if (rc == kTimeIsOver) {
      return Status(StatusCode::kTimedOut, concat("store: nobody set '", name, "' in time"));
    }
    if (rc != 0) return unknown_error(concat("store: getting '", name, "' failed with code ", rc));
    if (bytes > kMostExchangedBytes) {
      return corrupted(concat("store: '", name, "' has ", bytes, " bytes, expected at most ",
                              kMostExchangedBytes));
    }
    if (bytes <= buffer.size()) {
      buffer.resize(bytes);
      return buffer;
    }
    buffer.resize(bytes);
  }
}

}  // namespace hvd::store
