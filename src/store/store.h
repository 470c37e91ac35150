// store.h - where ranks leave small values for each other while a job comes together. Keys are
// written once; values are opaque bytes. Used at init only, so calls may block until their
// deadline. One thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace hvd::store {

class Store {
 public:
  virtual ~Store() = default;
  // PRECONDITION_ERROR when the key has another value already; setting the same again is fine.
  virtual Status set(std::string_view key, std::string_view value, Deadline deadline) = 0;
  // Waits until somebody has set it; TIMED_OUT when nobody did.
  virtual Result<std::string> get(std::string_view key, Deadline deadline) = 0;
};

}  // namespace hvd::store
