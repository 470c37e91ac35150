#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/text.h"
#include "negotiate/rules.h"
#include "negotiate/validate.h"
#include "wire/codec.h"
#include "wire/limits.h"

namespace hvd::negotiate {
namespace {

using wire::Kind;
using wire::Request;
using wire::TensorSpec;
using Ranks = std::span<const int32_t>;

constexpr KindSet kWithTensors = {Kind::kAllreduce, Kind::kAllgather, Kind::kBroadcast,
                                  Kind::kAdasum,    Kind::kAlltoall,  Kind::kReducescatter};
constexpr KindSet kGroupable = {Kind::kAllreduce, Kind::kAdasum, Kind::kAllgather,
                                Kind::kReducescatter};

// First problem of any tensor, with the member's label.
template <typename Problem>
std::string first_problem(const Request& request, Problem problem) {
  for (size_t i = 0; i < request.tensors.size(); ++i) {
    if (std::string text = problem(request.tensors[i]); !text.empty()) {
      return member_label(request, i) + text;
    }
  }
  return {};
}

// The operation of a reducescatter comes first because it has a status of its own.
std::string reducescatter_op(const Request& request, Ranks) {
  if (request.reduce_op == ReduceOp::kAverage || request.reduce_op == ReduceOp::kSum) return {};
  return concat("only Average and Sum are supported, got ", reduce_op_name(request.reduce_op));
}

std::string tensor_count(const Request& request, Ranks) {
  const size_t count = request.tensors.size();
  if (count == 0 && kWithTensors.contains(request.kind)) return "empty group, expected a tensor";
  if (count > 1 && !kGroupable.contains(request.kind)) {
    return concat("this operation takes no group, got ", count, " tensors");
  }
  if (count > wire::kMaxTensorsPerRequest) {
    return concat("expected at most ", wire::kMaxTensorsPerRequest, " tensors, got ", count);
  }
  return {};
}

std::string name_length(const Request& request, Ranks) {
  for (const TensorSpec& tensor : request.tensors) {
    if (tensor.name.size() <= wire::kMaxNameBytes) continue;
    return concat("expected a name of at most ", wire::kMaxNameBytes, " bytes, got ",
                  tensor.name.size());
  }
  return {};
}

std::string duplicate_name(const Request& request, Ranks) {
  if (request.tensors.size() < 2) return {};
  std::vector<std::string_view> names;
  names.reserve(request.tensors.size());
  for (const TensorSpec& tensor : request.tensors) {
    if (!tensor.name.empty()) names.push_back(tensor.name);
  }
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice == names.end()) return {};
  return concat("duplicate tensor name '", *twice, "' in the group");
}

std::string shape_problem(const TensorSpec& tensor) {
  if (tensor.shape.size() > wire::kMaxDimensions) {
    return concat("expected at most ", wire::kMaxDimensions, " dimensions, got ",
                  tensor.shape.size());
  }
  std::optional<uint64_t> bytes = dtype_bytes(tensor.dtype);
  for (int64_t dimension : tensor.shape) {
    if (dimension < 0) {
      return concat("negative dimension ", dimension, " in shape ", wire::shape_text(tensor.shape));
    }
    // A zero counts as one, so that the product of the other dimensions cannot overflow either.
    if (bytes) bytes = checked_mul(*bytes, static_cast<uint64_t>(std::max<int64_t>(dimension, 1)));
  }
  if (bytes && *bytes <= wire::kMaxTensorBytes) return {};
  return concat("absurd size: ", dtype_name(tensor.dtype), " of shape ",
                wire::shape_text(tensor.shape), " is over ", wire::kMaxTensorBytes, " bytes");
}

std::string shapes(const Request& request, Ranks) { return first_problem(request, shape_problem); }

std::string message_size(const Request& request, Ranks) {
  const size_t bytes = wire::encoded_bytes(request);
  if (bytes <= wire::kMaxMessageBytes) return {};
  return concat("describing the group takes ", bytes, " bytes, at most ", wire::kMaxMessageBytes,
                " are allowed");
}

std::string factors(const Request& request, Ranks) {
  if (!std::isfinite(request.prescale)) {
    return concat("prescale factor must be finite, got ", request.prescale);
  }
  if (!std::isfinite(request.postscale)) {
    return concat("postscale factor must be finite, got ", request.postscale);
  }
  return {};
}

// Adasum is a kind of its own; under the kind allreduce nobody would run it.
std::string allreduce_op(const Request& request, Ranks) {
  if (request.reduce_op != ReduceOp::kAdasum) return {};
  return "expected Average, Sum, Min, Max or Product, got Adasum";
}

std::string adasum_dtype(const Request& request, Ranks) {
  return first_problem(request, [](const TensorSpec& tensor) {
    if (is_floating(tensor.dtype)) return std::string();
    return concat("Adasum needs a floating-point dtype, got ", dtype_name(tensor.dtype));
  });
}

std::string wire_dtype(const Request& request, Ranks) {
  if (request.wire_dtype == -1) return {};
  const std::optional<DType> dtype = dtype_from_code(request.wire_dtype);
  if (dtype != DType::kFloat16 && dtype != DType::kBfloat16) {
    return concat("wire dtype must be float16 or bfloat16, got ",
                  dtype ? std::string(dtype_name(*dtype)) : concat("code ", request.wire_dtype));
  }
  const bool is_sum =
      request.reduce_op == ReduceOp::kSum || request.reduce_op == ReduceOp::kAverage;
  if (request.kind != Kind::kAllreduce || !is_sum) {
    return "a wire dtype is only for allreduce with Sum or Average";
  }
  return first_problem(request, [](const TensorSpec& tensor) {
    if (tensor.dtype == DType::kFloat32) return std::string();
    return concat("a wire dtype needs float32 tensors, got ", dtype_name(tensor.dtype));
  });
}

std::string root_membership(const Request& request, Ranks members) {
  const int32_t root = request.root_rank;
  if (root < 0) return concat("root rank must not be negative, got ", root);
  if (members.empty() || std::ranges::find(members, root) != members.end()) return {};
  return concat("root rank ", root, " is not a member of the process set");
}

std::string reducescatter_scalar(const Request& request, Ranks) {
  return first_problem(request, [](const TensorSpec& tensor) {
    return std::string(tensor.shape.empty() ? "a rank-zero tensor cannot be scattered" : "");
  });
}

std::string no_splits(const Request& request, Ranks) {
  return first_problem(request, [](const TensorSpec& tensor) {
    return std::string(tensor.splits.empty() ? "" : "splits are only for alltoall");
  });
}

// A scalar is left to negotiation, which tells all ranks.
std::string alltoall_splits(const Request& request, Ranks members) {
  const TensorSpec& tensor = request.tensors[0];
  if (tensor.splits.size() > wire::kMaxRanks) {
    return concat("expected at most ", wire::kMaxRanks, " splits, got ", tensor.splits.size());
  }
  if (tensor.shape.empty()) return {};
  if (!members.empty()) return splits_problem(tensor, members.size());
  return tensor.splits.empty() ? std::string() : splits_problem(tensor, tensor.splits.size());
}

std::string process_set_ranks(const Request& request, Ranks members) {
  if (request.ranks.empty()) return "a process set needs at least one rank";
  if (request.ranks.size() > wire::kMaxRanks) {
    return concat("expected at most ", wire::kMaxRanks, " ranks, got ", request.ranks.size());
  }
  std::vector<int32_t> sorted = request.ranks;
  std::ranges::sort(sorted);
  if (sorted.front() < 0) return concat("ranks must not be negative, got ", sorted.front());
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
    return concat("rank ", *twice, " is listed more than once");
  }
  // Sets are added by an operation of the global set, whose members are 0..size-1.
  if (members.empty() || static_cast<size_t>(sorted.back()) < members.size()) return {};
  return concat("rank ", sorted.back(), " is out of range, the job has ", members.size(), " ranks");
}

std::string process_set_id(const Request& request, Ranks) {
  if (request.ranks.size() != 1) {
    return concat("expected one process set id, got ", request.ranks.size());
  }
  if (request.ranks[0] > 0) return {};
  return concat("expected the id of an added process set, got ", request.ranks[0]);
}

struct LocalRule {
  KindSet kinds;
  std::string (*problem)(const Request&, Ranks);
  StatusCode code = StatusCode::kInvalidArgument;
};

// In order; later rules rely on earlier ones (splits on shapes and on the number of tensors).
constexpr LocalRule kLocalRules[] = {
    {{Kind::kReducescatter}, reducescatter_op, StatusCode::kAborted},
    {kEveryKind, tensor_count},
    {kEveryKind, name_length},
    {kEveryKind, duplicate_name},
    {kEveryKind, shapes},
    {kEveryKind, message_size},
    {kEveryKind, factors},
    {{Kind::kAllreduce}, allreduce_op},
    {{Kind::kAdasum}, adasum_dtype},
    {kEveryKind, wire_dtype},
    {{Kind::kBroadcast}, root_membership},
    {{Kind::kReducescatter}, reducescatter_scalar},
    {KindSet{Kind::kAlltoall}.complement(), no_splits},
    {{Kind::kAlltoall}, alltoall_splits},
    {{Kind::kProcessSetAdd}, process_set_ranks},
    {{Kind::kProcessSetRemove}, process_set_id},
};

// No ordinal here: an unnamed request has none before it is submitted.
std::string label(const Request& request) {
  std::string out(wire::kind_lower_name(request.kind));
  const bool named = std::ranges::any_of(
      request.tensors, [](const TensorSpec& tensor) { return !tensor.name.empty(); });
  if (named) out += ' ' + wire::display_name(request, 0);
  return out;
}

}  // namespace

Status validate_local(const Request& request, std::span<const int32_t> global_ranks) {
  for (const LocalRule& rule : kLocalRules) {
    if (!rule.kinds.contains(request.kind)) continue;
    if (std::string text = rule.problem(request, global_ranks); !text.empty()) {
      return {rule.code, concat(label(request), ": ", text)};
    }
  }
  return Status::ok();
}

}  // namespace hvd::negotiate
