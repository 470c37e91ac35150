// domain.h - what all channels of one rank need for Gloo: the plug-in, the address to listen at,
// the listener itself once it is needed. Outlives its groups.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/engine_role.h"
#include "base/status.h"
#include "gloo/plugin.h"

namespace hvd::collective::gloo {

struct DomainOptions {
  const hvd_gloo_plugin* plugin = nullptr;
  std::string address{};  // numeric, of this host
  // Shorter reductions are left to our own streams, and with them to the order in which small ones
  // are added: the same numbers have the same bits, whether an operation is new or known. Beyond
  // what may be small.
  uint64_t least_reduce_bytes = 64 << 10;
  // For connecting, and for a call that runs. Failures come from the control plane long before.
  Nanoseconds connect_time = std::chrono::seconds(30);
  Nanoseconds call_time = std::chrono::hours(24);
};

class Domain {
 public:
  explicit Domain(DomainOptions options) : options_(std::move(options)) {}
  ~Domain();
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;

  const hvd_gloo_plugin& plugin() const { return *options_.plugin; }
  const DomainOptions& options() const { return options_; }
  // Listens from the first call on.
  Result<hvd_gloo_device*> device() HVD_REQUIRES(engine_role);

 private:
  const DomainOptions options_;
  hvd_gloo_device* device_ = nullptr;
};

}  // namespace hvd::collective::gloo
