// convert.h - C structs to the engine's types, with every field distrusted.
#pragma once

#include <optional>
#include <vector>

#include "base/status.h"
#include "bootstrap/key_agreement.h"
#include "engine/engine.h"
#include "horovod/hvd.h"
#include "store/exchange_store.h"

namespace hvd::capi {

// Requests as one submission. Views into `storage`, which must outlive the call.
struct Converted {
  engine::Submission submission;
  int32_t set = 0;
  engine::TensorArg single;  // the usual case needs no allocation
  std::vector<engine::TensorArg> several;
};
Status convert(const hvd_request* requests, size_t count, const engine::Engine& engine,
               Converted& out);

Status apply_init_options(const hvd_init_options& options, engine::EngineOptions& out);

// The store that the caller brings; none if `options` is null or has none.
Result<std::optional<store::ExchangeCallbacks>> exchange_of(const hvd_init_options* options);

// How that store forgets a value; empty if the caller does not say. `prefix` is that of all keys.
bootstrap::Forget forget_of(const hvd_init_options* options, const std::string& prefix);

inline Deadline to_deadline(int64_t timeout_ns) {
  return timeout_ns == HVD_FOREVER ? Deadline::never()
                                   : Deadline::after(Nanoseconds(timeout_ns < 0 ? 0 : timeout_ns));
}

}  // namespace hvd::capi
