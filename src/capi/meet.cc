// Process sets that members open among themselves: the C functions.
#include <algorithm>
#include <cstring>

#include "capi/convert.h"
#include "capi/runtime.h"
#include "horovod/hvd.h"

using hvd::Status;
using hvd::StatusCode;
using hvd::engine::Engine;

namespace {

int32_t code_of(const Status& status) {
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kPreconditionError:
      return HVD_PROCESS_SET_ERROR_ARGUMENT;
    case StatusCode::kTimedOut:
      return HVD_PROCESS_SET_ERROR_TIMED_OUT;
    case StatusCode::kOutOfMemory:
      return HVD_PROCESS_SET_ERROR_FULL;
    default:
      return HVD_PROCESS_SET_ERROR_SHUTDOWN;
  }
}

}  // namespace

extern "C" {

int32_t hvd_process_set_meet(const char* key, const int32_t* ranks, int32_t count,
                             int64_t timeout_ns) {
  int32_t answer = HVD_PROCESS_SET_ERROR_INIT;
  const hvd_status status = hvd::capi::with_engine([&](Engine& engine) -> Status {
    answer = HVD_PROCESS_SET_ERROR_ARGUMENT;
    if (key == nullptr || ranks == nullptr || count < 1)
      return hvd::invalid_argument("meet: key or ranks are null, or there are no ranks");
    const bool is_member = std::find(ranks, ranks + count, engine.topology().rank) != ranks + count;
    const size_t length = strnlen(key, hvd::shm::kLongestMeetingKey + 1);
    auto id = engine.meet_process_set({key, length}, {ranks, ranks + count},
                                      hvd::capi::to_deadline(timeout_ns));
    if (id) {
      answer = *id;
      return Status::ok();
    }
    answer = code_of(id.status());
    if (answer == HVD_PROCESS_SET_ERROR_ARGUMENT && !is_member)
      answer = HVD_PROCESS_SET_ERROR_FOREIGN_SET;
    return id.status();
  });
  if (status == HVD_OUT_OF_MEMORY) return HVD_PROCESS_SET_ERROR_FULL;
  return answer;
}

hvd_status hvd_process_set_leave(int32_t id) {
  return hvd::capi::with_engine([&](Engine& engine) { return engine.leave_process_set(id); });
}

}  // extern "C"
