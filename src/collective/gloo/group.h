// group.h - Gloo's connections among the members of one channel, as an owner. Calls block and run
// on the group's worker; abort() is for any thread. After a failure every call fails.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"
#include "collective/gloo/domain.h"

namespace hvd::collective::gloo {

class Group {
 public:
  static Result<std::unique_ptr<Group>> open(Domain& domain, int me, int size)
      HVD_REQUIRES(engine_role);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int me() const { return me_; }
  int size() const { return size_; }

  std::string address_for(int peer) const;
  // addresses[r]: what member r's address_for(me()) said.
  Status connect(std::span<const std::string> addresses);
  void abort(const std::string& why);

  // in == out: in place.
  Status allreduce(const std::byte* in, std::byte* out, uint64_t count, DType dtype, ReduceOp op);
  Status allgather(const std::byte* in, std::byte* out, std::span<const uint64_t> bytes);
  Status broadcast(const std::byte* in, std::byte* out, uint64_t bytes, int root);
  Status alltoall(const std::byte* in, std::span<const uint64_t> send_bytes, std::byte* out,
                  std::span<const uint64_t> receive_bytes);

 private:
  Group(const hvd_gloo_plugin& plugin, hvd_gloo_group* group, int me, int size)
      : plugin_(plugin), group_(group), me_(me), size_(size) {}

  const hvd_gloo_plugin& plugin_;
  hvd_gloo_group* const group_;
  const int me_, size_;
};

}  // namespace hvd::collective::gloo
