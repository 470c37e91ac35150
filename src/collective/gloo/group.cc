#include "collective/gloo/group.h"

#include "base/text.h"
#include "reduce/kernels.h"

namespace hvd::collective::gloo {
namespace {

constexpr size_t kMostAddressBytes = 4096;

struct Elements {
  DType dtype;
  ReduceOp op;
};

// Called by Gloo, for a part of a vector at a time.
void combine_two(const void* state, void* out, const void* a, const void* b, size_t count) {
  const auto& elements = *static_cast<const Elements*>(state);
  const void* const sources[] = {a, b};
  void* const outputs[] = {out};
  kernels().reduce({elements.dtype, elements.op, count, sources, 2, outputs, 1, Scale{}});
}

// Which member it was Gloo does not say, only its socket; the control plane knows better.
Status status_of(hvd_gloo_result result, const char* what, const hvd_gloo_error& error) {
  if (result == HVD_GLOO_OK) return Status::ok();
  return Status(StatusCode::kPeerLost, concat("Gloo: ", what, ": ", error.text));
}

}  // namespace

Result<std::unique_ptr<Group>> Group::open(Domain& domain, int me, int size) {
  HVD_TRY_ASSIGN(hvd_gloo_device* const device, domain.device());
  const auto time_limit =
      std::chrono::duration_cast<std::chrono::milliseconds>(domain.options().call_time);
  hvd_gloo_error error{};
  hvd_gloo_group* const group =
      domain.plugin().open_group(device, me, size, time_limit.count(), &error);
  if (group == nullptr) return unknown_error(concat("Gloo: ", error.text));
  return std::unique_ptr<Group>(new Group(domain.plugin(), group, me, size));
}

Group::~Group() { plugin_.close_group(group_); }

std::string Group::address_for(int peer) const {
  std::string bytes(kMostAddressBytes, '\0');
  bytes.resize(plugin_.address_for(group_, peer, bytes.data(), bytes.size()));
  return bytes;
}

Status Group::connect(std::span<const std::string> addresses) {
  std::vector<const void*> data;
  std::vector<size_t> lengths;
  for (const std::string& address : addresses) {
    data.push_back(address.data());
    lengths.push_back(address.size());
  }
  hvd_gloo_error error{};
  return status_of(plugin_.connect(group_, data.data(), lengths.data(), &error),
                   "cannot connect the ranks (HOROVOD_GLOO_IFACE names the interface to use)",
                   error);
}

void Group::abort(const std::string& why) { plugin_.abort(group_, why.c_str()); }

Status Group::allreduce(const std::byte* in, std::byte* out, uint64_t count, DType dtype,
                        ReduceOp op) {
  const Elements elements{dtype, op};
  const hvd_gloo_allreduce_args args{.struct_size = sizeof(hvd_gloo_allreduce_args),
                                     .element_bytes = static_cast<uint32_t>(dtype_bytes(dtype)),
                                     .in = in,
                                     .out = out,
                                     .count = count,
                                     .reduce = combine_two,
                                     .state = &elements};
  hvd_gloo_error error{};
  return status_of(plugin_.allreduce(group_, &args, &error), "allreduce", error);
}

Status Group::allgather(const std::byte* in, std::byte* out, std::span<const uint64_t> bytes) {
  hvd_gloo_error error{};
  return status_of(plugin_.allgather(group_, in, out, bytes.data(), &error), "allgather", error);
}

Status Group::broadcast(const std::byte* in, std::byte* out, uint64_t bytes, int root) {
  hvd_gloo_error error{};
  return status_of(plugin_.broadcast(group_, in, out, bytes, root, &error), "broadcast", error);
}

Status Group::alltoall(const std::byte* in, std::span<const uint64_t> send_bytes, std::byte* out,
                       std::span<const uint64_t> receive_bytes) {
  hvd_gloo_error error{};
  return status_of(
      plugin_.alltoall(group_, in, send_bytes.data(), out, receive_bytes.data(), &error),
      "alltoall", error);
}

}  // namespace hvd::collective::gloo
