#include "elastic/inbox.h"

#include <utility>

#include "base/text.h"

namespace hvd::elastic {

void Inbox::take(const ToWorker& message) {
  if (const auto* assign = std::get_if<Assign>(&message)) {
    assigned_ = *assign;
    news_ = {};
  } else if (const auto* removed = std::get_if<Removed>(&message)) {
    removed_ = *removed;
  } else if (const auto* broken = std::get_if<Broken>(&message)) {
    broken_ = *broken;
  } else if (const auto* news = std::get_if<News>(&message)) {
    news_ = *news;
  } else {
    is_asked_to_leave_ = true;
  }
}

Result<std::optional<Assign>> Inbox::take_place(uint64_t epoch) {
  if (removed_) {
    return Status(StatusCode::kRemoved,
                  concat("this worker was removed from the job: ", removed_->reason));
  }
  if (!assigned_ || assigned_->epoch <= epoch) return std::optional<Assign>();
  return std::exchange(assigned_, std::nullopt);
}

Status Inbox::check_unbroken(uint64_t epoch) const {
  if (!broken_ || broken_->epoch < epoch) return Status::ok();
  return Status(StatusCode::kPeerLost,
                concat("epoch ", epoch, " ended while its members met: ", broken_->reason));
}

}  // namespace hvd::elastic
