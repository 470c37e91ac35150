// communicator.h - a communicator of NCCL, made without blocking. Calls need the device's context
// to be current.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "base/engine_role.h"
#include "collective/gpu/nccl_calls.h"
#include "device/nccl_api.h"
#include "device/stream.h"

namespace hvd::collective::gpu {

using device::NcclApi;
using device::NcclComm;
using device::NcclId;

class Communicator {
 public:
  struct Place {
    int device;
    int size;
    int me;
  };
  // Starts to meet the others.
  static Result<Communicator> begin(const NcclApi& api, const Place& place, const NcclId& id);
  Communicator(Communicator&& other) noexcept;
  Communicator& operator=(Communicator&&) = delete;
  ~Communicator();

  // Whether what was begun (meeting, or the launch of calls) is through; a failure of the library
  // or of a peer.
  Result<bool> is_ready() const;
  // All calls in one launch, in stream order.
  Status launch(std::span<const Call> calls, device::StreamHandle stream) HVD_REQUIRES(engine_role);
  // Ends everything that it has under way, also in other threads' streams.
  void abort();
  int device() const { return place_.device; }

 private:
  Communicator(const NcclApi& api, const Place& place) : api_(&api), place_(place) {}
  Status issue(const Call& call, int op, device::StreamHandle stream) const;
  Result<int> op_of(const Reduction& reduction);

  const NcclApi* api_;
  Place place_;
  NcclComm comm_ = nullptr;
  std::vector<std::pair<Reduction, int>> factors_;  // operations made for factors, kept for reuse
};

}  // namespace hvd::collective::gpu
