// inbox.h - what a worker of an elastic job has heard from its launcher, and what follows from it.
// Pure: messages in, answers out. Whoever owns it excludes threads from each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "elastic/message.h"

namespace hvd::elastic {

class Inbox {
 public:
  void take(const ToWorker& message);

  // The place in the world after `epoch`, once; none: not told yet. SHUT_DOWN with the reason if
  // this worker has none.
  Result<std::optional<Assign>> take_place(uint64_t epoch);
  // PEER_LOST when the launcher has said that `epoch`, or a later one, is broken.
  Status check_unbroken(uint64_t epoch) const;
  const News& news() const { return news_; }
  bool is_asked_to_leave() const { return is_asked_to_leave_; }

 private:
  std::optional<Assign> assigned_;
  std::optional<Removed> removed_;
  std::optional<Broken> broken_;  // the newest
  News news_;
  bool is_asked_to_leave_ = false;
};

}  // namespace hvd::elastic
