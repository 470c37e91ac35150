// exchange_store.h - a Store that somebody else runs, reached through function pointers: torch's
// TCPStore, an MPI library, PMI. One thread at a time; blocks as the functions do.
#pragma once

#include <cstddef>
#include <cstdint>

#include "store/store.h"

namespace hvd::store {

// Both return 0 on success, 1 when the time is over, anything else on failure.
struct ExchangeCallbacks {
  void* context = nullptr;
  int32_t (*set)(void* context, const char* key, const void* value, size_t bytes) = nullptr;
  // Waits for the key. Writes at most `capacity` bytes to `buffer` and the true size to `bytes`; a
  // larger value is asked for again with a larger buffer.
  int32_t (*get)(void* context, const char* key, void* buffer, size_t capacity, size_t* bytes,
                 int64_t timeout_ns) = nullptr;
};

class ExchangeStore final : public Store {
 public:
  // `prefix` keeps our keys apart from others' in the same store.
  ExchangeStore(const ExchangeCallbacks& callbacks, std::string prefix)
      : callbacks_(callbacks), prefix_(std::move(prefix)) {}

  Status set(std::string_view key, std::string_view value, Deadline deadline) override;
  Result<std::string> get(std::string_view key, Deadline deadline) override;

 private:
  ExchangeCallbacks callbacks_;
  std::string prefix_;
};

}  // namespace hvd::store
