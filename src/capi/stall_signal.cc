// hvd_set_stall_signal: belongs to the process, not to one of its engines.
#include "capi/runtime.h"
#include "horovod/hvd.h"

extern "C" hvd_status hvd_set_stall_signal(int32_t signal_number) {
  return hvd::capi::guarded(
      [&] { return hvd::capi::Runtime::instance().set_stall_signal(signal_number); });
}
