#include "device/driver.h"

#include <dlfcn.h>

#include "base/text.h"

namespace hvd::device {
namespace {

constexpr const char* kUsualName = "libcuda.so.1";

Status no_driver(std::string_view why) {
  return Status(StatusCode::kPreconditionError, concat("no GPU can be used: ", why));
}

std::string dl_error() {
  const char* text = dlerror();
  return text == nullptr ? "unknown reason" : text;
}

Status fill_in(void* library, DriverApi& api) {
#define HVD_FIND(member, symbol, ...)                                          \
  api.member = reinterpret_cast<decltype(api.member)>(dlsym(library, symbol)); \
  if (api.member == nullptr) return no_driver(concat("the driver has no function ", symbol));
  HVD_DRIVER_FUNCTIONS(HVD_FIND)
#undef HVD_FIND
  return Status::ok();
}

}  // namespace

Result<std::unique_ptr<Driver>> Driver::load(const Environment& environment) {
  const std::string path = environment("HOROVOD_CUDA_LIB").value_or(kUsualName);
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed
  if (library == nullptr) return no_driver(dl_error());
  std::unique_ptr<Driver> driver(new Driver());
  driver->path_ = path;
  HVD_TRY(fill_in(library, driver->api_));
  const DriverApi& api = driver->api_;
  if (const Status status = driver->check(api.init(0), "cuInit"); !status.is_ok())
    return no_driver(status.message());
  HVD_TRY(driver->check(api.driver_version(&driver->version_), "cuDriverGetVersion"));
  HVD_TRY(driver->check(api.device_count(&driver->device_count_), "cuDeviceGetCount"));
  if (driver->device_count_ == 0) return no_driver("the driver has no devices");
  if (driver->device_count_ > kMaxDevices) driver->device_count_ = kMaxDevices;
  return driver;
}

Result<Driver*> Driver::get() {
  // Never destroyed: streams of the program may outlive everything else.
  static auto* const loaded = new Result<std::unique_ptr<Driver>>(load(process_environment()));
  if (!*loaded) return loaded->status();
  return (**loaded).get();
}

Status Driver::check(int code, std::string_view what) const {
  if (code == kSuccess) return Status::ok();
  const char* name = nullptr;
  const char* text = nullptr;
  (void)api_.error_name(code, &name);
  (void)api_.error_text(code, &text);
  return Status(code == kOutOfMemory ? StatusCode::kOutOfMemory : StatusCode::kUnknownError,
                concat(what, ": ", text == nullptr ? "unknown error" : text, " (",
                       name == nullptr ? std::to_string(code) : name, ")"));
}

Result<Context> Driver::context_of(int device) {
  if (device < 0 || device >= device_count_) {
    return invalid_argument(concat("device ", device, " does not exist; the driver has ",
                                   device_count_, " devices, counted from 0"));
  }
  const MutexLock lock(mutex_);
  Context& context = contexts_[static_cast<size_t>(device)];
  if (context != nullptr) return context;
  int handle = 0;
  HVD_TRY(check(api_.device_get(&handle, device), "cuDeviceGet"));
  HVD_TRY(check(api_.retain_primary(&context, handle), "cuDevicePrimaryCtxRetain"));
  return context;
}

Result<std::string> Driver::bus_id(int device) const {
  char text[32] = {};
  HVD_TRY(check(api_.pci_bus_id(text, sizeof text, device), "cuDeviceGetPCIBusId"));
  return std::string(text);
}

Result<std::string> Driver::name(int device) const {
  char text[128] = {};
  HVD_TRY(check(api_.device_name(text, sizeof text, device), "cuDeviceGetName"));
  return std::string(text);
}

int Driver::device_of(const void* pointer) const {
  int device = -1;
  const int code = api_.pointer_attribute(&device, kAttributeDeviceOrdinal,
                                          reinterpret_cast<DevicePointer>(pointer));
  return code == kSuccess ? device : -1;
}

Result<Current> Current::enter(int device) {
  HVD_TRY_ASSIGN(Driver* const driver, Driver::get());
  HVD_TRY_ASSIGN(const Context context, driver->context_of(device));
  HVD_TRY(driver->check(driver->api().push_context(context), "cuCtxPushCurrent"));
  int mode = kCaptureRelaxed;
  (void)driver->api().exchange_capture_mode(&mode);  // now the old one; fails only on a bad mode
  return Current(driver, mode);
}

}  // namespace hvd::device
