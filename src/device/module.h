// module.h - kernels in a device's context, from the text of an assembler that every driver
// translates for its own devices. Needs the device's context to be current. Any thread; loading
// takes the driver's time, the rest never blocks.
#pragma once

#include "base/status.h"
#include "device/driver.h"

namespace hvd::device {

using FunctionHandle = void*;

// Stays in the context until the process ends: who loads it keeps it.
class Module {
 public:
  static Result<Module> load(const char* text);
  Result<FunctionHandle> find(const char* name) const;

 private:
  explicit Module(void* handle) : handle_(handle) {}
  void* handle_;
};

struct Grid {
  unsigned blocks = 1;
  unsigned rows = 1;  // of blocks
  unsigned threads = 1;
};
// `parameters`: one address for each parameter of the kernel, read in the call.
Status launch(FunctionHandle function, const Grid& grid, void** parameters, StreamHandle stream);

}  // namespace hvd::device
