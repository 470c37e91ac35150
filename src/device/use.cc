#include "device/use.h"

#include <cstdint>

namespace hvd::device {
namespace {

// CU_STREAM_PER_THREAD: another stream on each thread.
const StreamHandle kStreamPerThread = reinterpret_cast<StreamHandle>(uintptr_t{2});

}  // namespace

Result<Use> Use::begin(int device, StreamHandle stream) {
  HVD_TRY_ASSIGN(Driver* const driver, Driver::get());
  HVD_TRY_ASSIGN(const Current current, Current::enter(device));
  int is_capturing = 0;
  const int code = driver->api().stream_is_capturing(stream, &is_capturing);
  if (code != kCaptureImplicit) HVD_TRY(driver->check(code, "cuStreamIsCapturing"));
  if (code == kCaptureImplicit || is_capturing != 0) {
    return Status(StatusCode::kPreconditionError,
                  "the current stream is being captured into a CUDA graph: what the ranks agree on "
                  "cannot be replayed. Capture the computation alone, and call Horovod outside it");
  }
  Use use;
  use.device = device;
  use.stream = stream;
  HVD_TRY_ASSIGN(use.ready, Event::take(device));
  HVD_TRY(use.ready.record(stream));
  return use;
}

Status Use::note_allocation() {
  if (stream == kStreamPerThread) return Status::ok();
  HVD_TRY_ASSIGN(Driver* const driver, Driver::get());
  HVD_TRY_ASSIGN(const Current current, Current::enter(device));
  int is_capturing = 0;
  if (driver->api().stream_is_capturing(stream, &is_capturing) != 0 || is_capturing != 0)
    return Status::ok();
  if (!allocated.is_set()) {
    HVD_TRY_ASSIGN(allocated, Event::take(device));
  }
  return allocated.record(stream);
}

Status Use::hold_back(StreamHandle later) const {
  if (ready.is_set()) HVD_TRY(ready.hold_back(later));
  return allocated.is_set() ? allocated.hold_back(later) : Status::ok();
}

Status Use::order(StreamHandle after) const {
  if (!done.is_set()) return Status::ok();
  HVD_TRY_ASSIGN(const Current current, Current::enter(device));
  return done.hold_back(after);
}

}  // namespace hvd::device
