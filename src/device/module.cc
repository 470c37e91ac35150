#include "device/module.h"

#include "base/text.h"

namespace hvd::device {

Result<Module> Module::load(const char* text) {
  HVD_TRY_ASSIGN(const Driver* const driver, Driver::get());
  void* handle = nullptr;
  HVD_TRY(driver->check(driver->api().module_load(&handle, text), "cuModuleLoadData"));
  return Module(handle);
}

Result<FunctionHandle> Module::find(const char* name) const {
  HVD_TRY_ASSIGN(const Driver* const driver, Driver::get());
  FunctionHandle function = nullptr;
  HVD_TRY(driver->check(driver->api().module_function(&function, handle_, name),
                        concat("cuModuleGetFunction ", name)));
  return function;
}

Status launch(FunctionHandle function, const Grid& grid, void** parameters, StreamHandle stream) {
  HVD_TRY_ASSIGN(const Driver* const driver, Driver::get());
  constexpr unsigned kNoSharedMemory = 0;
  return driver->check(
      driver->api().launch_kernel(function, grid.blocks, grid.rows, 1, grid.threads, 1, 1,
                                  kNoSharedMemory, stream, parameters, nullptr),
      "cuLaunchKernel");
}

}  // namespace hvd::device
