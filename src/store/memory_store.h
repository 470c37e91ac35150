// memory_store.h - a Store inside one process, shared by ranks that are threads (tests). Any
// thread.
#pragma once

#include <condition_variable>
#include <map>

#include "base/thread_annotations.h"
#include "store/store.h"

namespace hvd::store {

class MemoryStore final : public Store {
 public:
  Status set(std::string_view key, std::string_view value, Deadline deadline) override;
  Result<std::string> get(std::string_view key, Deadline deadline) override;

 private:
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::string, std::string, std::less<>> values_ HVD_GUARDED_BY(mutex_);
};

}  // namespace hvd::store
