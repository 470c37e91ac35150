#include "store/memory_store.h"

#include "base/text.h"

namespace hvd::store {

Status MemoryStore::set(std::string_view key, std::string_view value, Deadline) {
  const MutexLock lock(mutex_);
  const auto [at, fresh] = values_.try_emplace(std::string(key), value);
  if (!fresh && at->second != value) {
    return precondition_error(concat("store: '", key, "' has another value already"));
  }
  changed_.notify_all();
  return Status::ok();
}

Result<std::string> MemoryStore::get(std::string_view key, Deadline deadline) {
  const MutexLock lock(mutex_);
  for (;;) {
    if (const auto at = values_.find(key); at != values_.end()) return at->second;
    if (deadline.passed()) {
      return Status(StatusCode::kTimedOut, concat("store: nobody set '", key, "' in time"));
    }
    changed_.wait_for(mutex_, deadline.remaining(std::chrono::hours(1)));
  }
}

}  // namespace hvd::store
