// interrupted_store.h - a Store whose waits end when an Interrupt says so. Asks the store below for
// a moment at a time: only a world that fell apart while it met has to wait for one of them.
// One thread at a time; blocks as the store below.
#pragma once

#include "base/interrupt.h"
#include "store/store.h"

namespace hvd::bootstrap {

class InterruptedStore final : public store::Store {
 public:
  InterruptedStore(store::Store& below, const Interrupt& interrupt)
      : below_(below), interrupt_(interrupt) {}

  Status set(std::string_view key, std::string_view value, Deadline deadline) override {
    HVD_TRY(interrupt_.look());
    return below_.set(key, value, deadline);
  }

  Result<std::string> get(std::string_view key, Deadline deadline) override {
    constexpr auto kMoment = std::chrono::milliseconds(50);
    while (true) {
      HVD_TRY(interrupt_.look());
      const Deadline soon = Deadline::after(deadline.remaining(kMoment));
      auto value = below_.get(key, soon);
      const bool is_late = !value && value.status().code() == StatusCode::kTimedOut;
      if (!is_late || deadline.passed()) return value;
    }
  }

 private:
  store::Store& below_;
  const Interrupt& interrupt_;
};

}  // namespace hvd::bootstrap
