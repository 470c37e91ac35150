// options.h - what the device path of one channel is told. Pure; any thread.
#pragma once

#include <cstdint>
#include <vector>

namespace hvd::collective::gpu {

struct Options {
  int size = 1;  // members, and this one's place among them
  int me = 0;
  int32_t process_set = 0;
  int nccl_streams = 1;           // HOROVOD_NUM_NCCL_STREAMS
  bool async_completion = false;  // HOROVOD_ENABLE_ASYNC_COMPLETION
};

}  // namespace hvd::collective::gpu
