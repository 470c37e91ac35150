#include "mpi/mpi_store.h"

#include <algorithm>
#include <thread>

#include "base/text.h"

namespace hvd::mpi {

Status MpiStore::set(std::string_view key, std::string_view value, Deadline) {
  const auto [at, is_new] = own_.try_emplace(std::string(key), value);
  if (!is_new) {
    if (at->second == value) return Status::ok();
    return precondition_error(concat("store: '", key, "' has another value already"));
  }
  if (group_.rank() != 0) return group_.tell(0, at->first, at->second);
  for (int32_t rank = 1; rank < group_.size(); ++rank)
    HVD_TRY(group_.tell(rank, at->first, at->second));
  return Status::ok();
}

Result<std::string> MpiStore::get(std::string_view key, Deadline deadline) {
  if (const auto own = own_.find(key); own != own_.end()) return own->second;
  const std::string name(key);
  for (Nanoseconds rest = std::chrono::microseconds(10);;
       rest = std::min<Nanoseconds>(rest * 2, std::chrono::milliseconds(1))) {
    group_.poll();
    HVD_TRY(group_.status());
    if (auto value = group_.told(name)) return *std::move(value);
    if (deadline.passed())
      return Status(StatusCode::kTimedOut, concat("store: nobody set '", name, "' in time"));
    std::this_thread::sleep_for(rest);
  }
}

}  // namespace hvd::mpi
