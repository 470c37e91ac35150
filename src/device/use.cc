#include "device/use.h"

namespace hvd::device {

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

Status Use::renew() {
  HVD_TRY_ASSIGN(const Current current, Current::enter(device));
  return ready.record(stream);
}

Status Use::order(StreamHandle after) const {
  if (!done.is_set()) return Status::ok();
  HVD_TRY_ASSIGN(const Current current, Current::enter(device));
  return done.hold_back(after);
}

}  // namespace hvd::device
