#include "collective/gpu/communicator.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "reduce/kernels.h"

namespace hvd::collective::gpu {
namespace {

constexpr int kBytes = 0;          // ncclInt8: what is only moved
constexpr int kHostImmediate = 1;  // the factor is read in the call

// The factor as an element of the dtype.
struct Scalar {
  alignas(8) std::byte bytes[8] = {};
};
Scalar scalar_of(int dtype, double factor) {
  Scalar scalar;
  const auto single = static_cast<float>(factor);
  if (dtype == 8) std::memcpy(scalar.bytes, &factor, sizeof factor);
  if (dtype == 7) std::memcpy(scalar.bytes, &single, sizeof single);
  if (dtype == 6) kernels().narrow(DType::kFloat16, scalar.bytes, &single, 1, Scale{});
  if (dtype == 9) kernels().narrow(DType::kBfloat16, scalar.bytes, &single, 1, Scale{});
  return scalar;
}

}  // namespace

Result<Communicator> Communicator::begin(const NcclApi& api, const Place& place, const NcclId& id) {
  Communicator made(api, place);
  device::NcclConfig config;
  HVD_TRY(api.check(api.init_rank(&made.comm_, place.size, id, place.me, &config),
                    "ncclCommInitRankConfig"));
  return made;
}

Communicator::Communicator(Communicator&& other) noexcept
    : api_(other.api_),
      place_(other.place_),
      comm_(std::exchange(other.comm_, nullptr)),
      factors_(std::move(other.factors_)) {}

Communicator::~Communicator() {
  if (comm_ == nullptr) return;
  const auto current = device::Current::enter(place_.device);
  (void)api_->destroy(comm_);
}

void Communicator::abort() {
  if (comm_ == nullptr) return;
  const auto current = device::Current::enter(place_.device);
  (void)api_->abort(std::exchange(comm_, nullptr));
}

Result<bool> Communicator::is_ready() const {
  int state = device::kNcclSuccess;
  HVD_TRY(api_->check(api_->async_error(comm_, &state), "ncclCommGetAsyncError", comm_));
  if (state == device::kNcclInProgress) return false;
  if (state != device::kNcclSuccess)
    return unknown_error(concat("NCCL async error: ", api_->error_text(state)));
  return true;
}

Result<int> Communicator::op_of(const Reduction& reduction) {
  if (reduction.factor == 1.0) return static_cast<int>(reduction.op);
  for (const auto& [known, op] : factors_) {
    if (known == reduction) return op;
  }
  constexpr size_t kMostFactors = 64;
  if (factors_.size() == kMostFactors) {
    (void)api_->destroy_op(factors_.front().second, comm_);
    factors_.erase(factors_.begin());
  }
  Scalar scalar = scalar_of(reduction.dtype, reduction.factor);
  int op = 0;
  HVD_TRY(api_->check(
      api_->create_pre_mul_sum(&op, scalar.bytes, reduction.dtype, kHostImmediate, comm_),
      "ncclRedOpCreatePreMulSum", comm_));
  factors_.emplace_back(reduction, op);
  return op;
}

Status Communicator::issue(const Call& c, int op, device::StreamHandle stream) const {
  const int dtype = c.reduction.dtype;
  switch (c.kind) {
    case CallKind::kAllReduce:
      return api_->check(api_->all_reduce(c.in, c.out, c.count, dtype, op, comm_, stream),
                         "ncclAllReduce", comm_);
    case CallKind::kReduce:
      return api_->check(api_->reduce(c.in, c.out, c.count, dtype, op, c.peer, comm_, stream),
                         "ncclReduce", comm_);
    case CallKind::kReduceScatter:
      return api_->check(api_->reduce_scatter(c.in, c.out, c.count, dtype, op, comm_, stream),
                         "ncclReduceScatter", comm_);
    case CallKind::kAllGather:
      return api_->check(api_->all_gather(c.in, c.out, c.count, kBytes, comm_, stream),
                         "ncclAllGather", comm_);
    case CallKind::kBroadcast:
      return api_->check(api_->broadcast(c.in, c.out, c.count, kBytes, c.peer, comm_, stream),
                         "ncclBroadcast", comm_);
    case CallKind::kSend:
      return api_->check(api_->send(c.in, c.count, kBytes, c.peer, comm_, stream), "ncclSend",
                         comm_);
    case CallKind::kReceive:
      return api_->check(api_->receive(c.out, c.count, kBytes, c.peer, comm_, stream), "ncclRecv",
                         comm_);
  }
  return Status::ok();
}

Status Communicator::launch(std::span<const Call> calls, device::StreamHandle stream) {
  std::vector<int> ops;
  for (const Call& call : calls) {
    HVD_TRY_ASSIGN(const int op, op_of(call.reduction));
    ops.push_back(op);
  }
  HVD_TRY(api_->check(api_->group_start(), "ncclGroupStart"));
  Status first = Status::ok();
  for (size_t i = 0; i < calls.size() && first.is_ok(); ++i)
    first = issue(calls[i], ops[i], stream);
  // The group is closed whatever happened in it.
  const Status end = api_->check(api_->group_end(), "ncclGroupEnd", comm_);
  return first.is_ok() ? end : first;
}

}  // namespace hvd::collective::gpu
