#include "collective/gpu/nccl_calls.h"

#include <algorithm>

namespace hvd::collective::gpu {
namespace {

constexpr int kNcclInt8 = 0, kNcclUint8 = 1;

std::optional<int> nccl_dtype(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return kNcclInt8;
    case DType::kUint8:
    case DType::kBool:
      return kNcclUint8;
    case DType::kInt32:
      return 2;
    case DType::kInt64:
      return 4;
    case DType::kFloat16:
      return 6;
    case DType::kFloat32:
      return 7;
    case DType::kFloat64:
      return 8;
    case DType::kBfloat16:
      return 9;
    default:
      return std::nullopt;
  }
}

std::optional<Reduction::Op> nccl_op(ReduceOp op, bool is_bool) {
  switch (op) {
    case ReduceOp::kSum:
      return is_bool ? Reduction::Op::kMax : Reduction::Op::kSum;
    case ReduceOp::kProduct:
      return is_bool ? Reduction::Op::kMin : Reduction::Op::kProduct;
    case ReduceOp::kMin:
      return Reduction::Op::kMin;
    case ReduceOp::kMax:
      return Reduction::Op::kMax;
    default:
      return std::nullopt;
  }
}

bool all_equal(const std::vector<uint64_t>& values) {
  return std::all_of(values.begin(), values.end(), [&](uint64_t v) { return v == values[0]; });
}

void add_gather(std::vector<Call>& calls, const Exchange& x, int me) {
  const size_t size = x.receive_bytes.size();
  bool is_even = size > 0 && x.receive_bytes[0] > 0 && all_equal(x.receive_bytes);
  for (size_t r = 0; r < size; ++r)
    is_even = is_even && x.receive_offset[r] == r * x.receive_bytes[0];
  if (is_even) {
    calls.push_back({CallKind::kAllGather, x.in, x.out, x.receive_bytes[0]});
    return;
  }
  for (size_t root = 0; root < size; ++root) {
    if (x.receive_bytes[root] == 0) continue;
    std::byte* out = x.out + x.receive_offset[root];
    const std::byte* in = static_cast<int>(root) == me ? x.in : out;
    calls.push_back(
        {CallKind::kBroadcast, in, out, x.receive_bytes[root], {}, static_cast<int>(root)});
  }
}

void add_scatter(std::vector<Call>& calls, const Exchange& x, int size) {
  const Reduction reduction = *reduction_of(x.numeric, size);
  const uint64_t element = x.numeric.element_bytes();
  if (x.send_bytes[0] > 0 && all_equal(x.send_bytes)) {
    calls.push_back({CallKind::kReduceScatter, x.in, x.out, x.send_bytes[0] / element, reduction});
    return;
  }
  for (size_t root = 0; root < x.send_bytes.size(); ++root) {
    if (x.send_bytes[root] == 0) continue;
    calls.push_back({CallKind::kReduce, x.in + x.send_offset[root], x.out,
                     x.send_bytes[root] / element, reduction, static_cast<int>(root)});
  }
}

void add_letters(std::vector<Call>& calls, const Exchange& x) {
  for (size_t peer = 0; peer < x.send_bytes.size(); ++peer) {
    const int to = static_cast<int>(peer);
    if (x.send_bytes[peer] > 0)
      calls.push_back(
          {CallKind::kSend, x.in + x.send_offset[peer], nullptr, x.send_bytes[peer], {}, to});
    if (x.receive_bytes[peer] > 0)
      calls.push_back({CallKind::kReceive,
                       nullptr,
                       x.out + x.receive_offset[peer],
                       x.receive_bytes[peer],
                       {},
                       to});
  }
}

}  // namespace

std::optional<Reduction> reduction_of(const Numeric& n, int size) {
  const bool is_bool = n.dtype == DType::kBool;
  const auto dtype = nccl_dtype(n.dtype);
  const auto op = nccl_op(n.op, is_bool);
  if (n.slot_dtype != n.dtype || !dtype || !op) return std::nullopt;
  if (n.pre.is_identity() && n.post.is_identity()) return Reduction{*dtype, *op, 1.0};
  if (n.op != ReduceOp::kSum || is_bool) return std::nullopt;
  if (n.pre.is_identity() && n.post.factor == 1.0 && n.post.divisor == size)
    return Reduction{*dtype, Reduction::Op::kAverage, 1.0};
  if (!is_floating(n.dtype)) return std::nullopt;
  const double factor = n.pre.factor / static_cast<double>(n.pre.divisor) * n.post.factor /
                        static_cast<double>(n.post.divisor);
  return Reduction{*dtype, Reduction::Op::kSum, factor};
}

Numeric plain_numeric(const Reduction& reduction) {
  constexpr DType kDTypes[] = {DType::kUint8,   DType::kInt8,    DType::kInt32,   DType::kInt64,
                               DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kBfloat16};
  constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax};
  Numeric n;
  for (const DType dtype : kDTypes) {
    if (nccl_dtype(dtype) == reduction.dtype) n.dtype = n.slot_dtype = dtype;
  }
  for (const ReduceOp op : kOps) {
    if (nccl_op(op, false) == reduction.op) n.op = op;
  }
  return n;
}

bool can_run(const Work& work, int size) {
  if (work.kind != WorkKind::kReduce && work.kind != WorkKind::kExchange) return false;
  for (size_t r = 0; r < work.run_count; ++r) {
    if (!reduction_of(work.runs[r].numeric, size)) return false;
  }
  return std::all_of(work.exchanges.begin(), work.exchanges.end(), [&](const Exchange& x) {
    return !x.reduces || reduction_of(x.numeric, size).has_value();
  });
}

std::vector<Call> calls_of(const Work& work, int size, int me) {
  std::vector<Call> calls;
  for (size_t r = 0; r < work.run_count; ++r) {
    const Reduction reduction = *reduction_of(work.runs[r].numeric, size);
    for (const Piece& piece : work.runs[r].pieces) {
      if (piece.count > 0)
        calls.push_back({CallKind::kAllReduce, piece.in, piece.out, piece.count, reduction});
    }
  }
  for (const Exchange& x : work.exchanges) {
    if (x.same_block_for_all) {
      add_gather(calls, x, me);
    } else if (x.reduces) {
      add_scatter(calls, x, size);
    } else {
      add_letters(calls, x);
    }
  }
  return calls;
}

uint64_t input_bytes(const Exchange& x) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < x.send_bytes.size(); ++i)
    bytes = std::max(bytes, x.send_offset[i] + x.send_bytes[i]);
  return bytes;
}

uint64_t output_bytes(const Exchange& x) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < x.receive_bytes.size(); ++i)
    bytes = std::max(bytes, x.receive_offset[i] + x.receive_bytes[i]);
  return bytes;
}

bool must_copy_input(const Exchange& x, int me) {
  if (x.in == nullptr || x.out == nullptr) return false;
  const bool apart =
      x.in + input_bytes(x) <= x.out || x.out + output_bytes(x) <= x.in || input_bytes(x) == 0;
  if (apart) return false;
  // Each block lies where it will be anyway.
  return !x.same_block_for_all || x.in != x.out + x.receive_offset[static_cast<size_t>(me)];
}

}  // namespace hvd::collective::gpu
