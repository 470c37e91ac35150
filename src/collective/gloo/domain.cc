#include "collective/gloo/domain.h"

#include "base/text.h"

namespace hvd::collective::gloo {

Domain::~Domain() {
  if (device_ != nullptr) plugin().close_device(device_);
}

Result<hvd_gloo_device*> Domain::device() {
  if (device_ != nullptr) return device_;
  hvd_gloo_error error{};
  device_ = plugin().open_device(options_.address.c_str(), &error);
  if (device_ != nullptr) return device_;
  return unknown_error(concat("Gloo cannot listen at ", options_.address, ": ", error.text,
                              "; HOROVOD_GLOO_IFACE names the interface to use"));
}

}  // namespace hvd::collective::gloo
