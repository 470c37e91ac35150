// options.h - what the device path of one channel is told. Pure; any thread.
#pragma once

#include <cstdint>
#include <memory>

#include "base/engine_role.h"

namespace hvd::collective::gpu {

// What the channels of an engine have said already.
struct Notices {
  // That tensors of GPUs travel through it, and why.
  bool host_memory HVD_GUARDED_BY(engine_role) = false;
  // That settings about levels are not followed, and why.
  bool levels HVD_GUARDED_BY(engine_role) = false;
};

struct Options {
  int size = 1;  // members, and this one's place among them
  int me = 0;
  int host = 0;  // of this member, as all members number them
  int local_rank = 0;
  int32_t process_set = 0;
  int nccl_streams = 1;           // HOROVOD_NUM_NCCL_STREAMS, of this member
  bool async_completion = false;  // HOROVOD_ENABLE_ASYNC_COMPLETION
  std::shared_ptr<Notices> notices = std::make_shared<Notices>();  // all channels own it
};

}  // namespace hvd::collective::gpu
