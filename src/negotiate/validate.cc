#include "negotiate/validate.h"

#include <algorithm>
#include <bit>
#include <string_view>

#include "base/text.h"
#include "negotiate/plan.h"
#include "negotiate/rules.h"

namespace hvd::negotiate {
namespace {

using wire::Kind;
using wire::Request;
using wire::TensorSpec;

constexpr KindSet kSameShape = {Kind::kAllreduce, Kind::kAdasum, Kind::kBroadcast,
                                Kind::kReducescatter};
constexpr KindSet kScaled = {Kind::kAllreduce, Kind::kAdasum, Kind::kReducescatter};
constexpr KindSet kByRows = {Kind::kAllgather, Kind::kAlltoall, Kind::kReducescatter};
// A joined rank contributes zeros to these; join itself is how it joins.
constexpr KindSet kWorksWithJoined = {Kind::kAllreduce, Kind::kAdasum, Kind::kJoin};

// Everything is compared with the request of the lowest set rank that has not joined.
struct Compared {
  const ValidateInput& input;
  size_t first_rank;
  const Request& first;

  size_t size() const { return input.requests.size(); }
  const Request* at(size_t set_rank) const { return input.requests[set_rank]; }
  int32_t global_rank(size_t set_rank) const { return input.global_ranks[set_rank]; }
};

// What is compared, as the message calls it: "data types", or "ALLREDUCE tensor shapes" after the
// kind.
struct Topic {
  enum class Form : uint8_t { kPlain, kAfterKind };
  std::string_view text;
  Form form = Form::kPlain;
};
constexpr Topic after_kind(std::string_view text) { return {text, Topic::Form::kAfterKind}; }

// "Mismatched data types: rank 0 sent float32, rank 3 sent float16"
std::string mismatch(const Compared& all, size_t other_rank, Topic topic,
                     std::string_view first_text, std::string_view other_text) {
  const bool with_kind = topic.form == Topic::Form::kAfterKind;
  return concat("Mismatched ", with_kind ? wire::kind_name(all.first.kind) : "",
                with_kind ? " " : "", topic.text, ": rank ", all.global_rank(all.first_rank),
                " sent ", first_text, ", rank ", all.global_rank(other_rank), " sent ", other_text);
}

// `same(first, other)` and, if not, `text(request)` for both.
template <typename Same, typename Text>
std::string compare(const Compared& all, Topic topic, Same same, Text text) {
  for (size_t r = all.first_rank + 1; r < all.size(); ++r) {
    const Request* other = all.at(r);
    if (other == nullptr || same(all.first, *other)) continue;
    return mismatch(all, r, topic, text(all.first), text(*other));
  }
  return {};
}

// The same, tensor by tensor. Kinds or counts may still differ, so it stops at the shorter list.
template <typename Same, typename Text>
std::string compare_tensors(const Compared& all, Topic topic, Same same, Text text) {
  for (size_t r = all.first_rank + 1; r < all.size(); ++r) {
    if (all.at(r) == nullptr) continue;
    const std::vector<TensorSpec>& others = all.at(r)->tensors;
    const size_t count = std::min(all.first.tensors.size(), others.size());
    for (size_t i = 0; i < count; ++i) {
      const TensorSpec& mine = all.first.tensors[i];
      if (same(mine, others[i])) continue;
      return member_label(all.first, i) + mismatch(all, r, topic, text(mine), text(others[i]));
    }
  }
  return {};
}

// First problem(tensor) of any rank, which is named.
template <typename Problem>
std::string each_tensor(const Compared& all, Problem problem) {
  for (size_t r = all.first_rank; r < all.size(); ++r) {
    if (all.at(r) == nullptr) continue;
    for (size_t i = 0; i < all.at(r)->tensors.size(); ++i) {
      const std::string text = problem(all.at(r)->tensors[i]);
      if (text.empty()) continue;
      return concat(member_label(*all.at(r), i), "rank ", all.global_rank(r), ": ", text);
    }
  }
  return {};
}

std::string ranks_text(const Request& request) {
  return concat('[', join_text(request.ranks), ']');
}
std::string tensor_shape_text(const TensorSpec& tensor) { return wire::shape_text(tensor.shape); }

// Members can be compared one by one only if the lists are alike. Where the kinds differ as well,
// that is the better message, and the rule for kinds gives it.
std::string group_sizes(const Compared& all) {
  return compare(
      all, {"group sizes"},
      [](const Request& a, const Request& b) {
        return a.kind != b.kind || a.tensors.size() == b.tensors.size();
      },
      [](const Request& request) { return concat(request.tensors.size(), " tensors"); });
}

std::string member_names(const Compared& all) {
  for (size_t r = all.first_rank + 1; r < all.size(); ++r) {
    if (all.at(r) == nullptr || all.at(r)->kind != all.first.kind) continue;
    for (size_t i = 0; i < all.first.tensors.size(); ++i) {
      const std::string& mine = all.first.tensors[i].name;
      const std::string& other = all.at(r)->tensors[i].name;
      if (mine == other) continue;
      return mismatch(all, r, {"tensor names"}, concat('\'', mine, '\''),
                      concat('\'', other, '\''));
    }
  }
  return {};
}

std::string dtypes(const Compared& all) {
  return compare_tensors(
      all, {"data types"}, [](const auto& a, const auto& b) { return a.dtype == b.dtype; },
      [](const TensorSpec& tensor) { return dtype_name(tensor.dtype); });
}

std::string kinds(const Compared& all) {
  return compare(
      all, {"operations"}, [](const Request& a, const Request& b) { return a.kind == b.kind; },
      [](const Request& request) { return wire::kind_name(request.kind); });
}

std::string shapes(const Compared& all) {
  const auto same = [](const TensorSpec& a, const TensorSpec& b) { return a.shape == b.shape; };
  return compare_tensors(all, after_kind("tensor shapes"), same, tensor_shape_text);
}

std::string factors(const Compared& all) {
  const auto bits = [](double value) { return std::bit_cast<uint64_t>(value); };
  return compare(
      all, {"prescale and/or postscale factors"},
      [bits](const Request& a, const Request& b) {
        return bits(a.prescale) == bits(b.prescale) && bits(a.postscale) == bits(b.postscale);
      },
      [](const Request& request) {
        return concat("prescale ", request.prescale, " and postscale ", request.postscale);
      });
}

std::string reduce_ops(const Compared& all) {
  return compare(
      all, {"reduction operation"},
      [](const Request& a, const Request& b) { return a.reduce_op == b.reduce_op; },
      [](const Request& request) { return reduce_op_name(request.reduce_op); });
}

std::string wire_dtypes(const Compared& all) {
  return compare(
      all, {"wire data types"},
      [](const Request& a, const Request& b) { return a.wire_dtype == b.wire_dtype; },
      [](const Request& request) {
        const std::optional<DType> dtype = dtype_from_code(request.wire_dtype);
        return dtype ? dtype_name(*dtype) : "none";
      });
}

std::string joined_ranks(const Compared& all) {
  std::vector<int32_t> joined;
  for (size_t r = 0; r < all.size(); ++r) {
    if (all.at(r) == nullptr) joined.push_back(all.global_rank(r));
  }
  if (joined.empty()) return {};
  const bool is_one = joined.size() == 1;
  std::string text = concat("not supported with Join at this time: ", is_one ? "rank " : "ranks ",
                            join_text(joined), is_one ? " has joined" : " have joined");
  if (all.first.kind == Kind::kAllgather) {
    text +=
        "; if this gathers sparse gradients, set sparse_as_dense=True in the DistributedOptimizer";
  }
  return text;
}

std::string scalars(const Compared& all) {
  return each_tensor(all, [](const TensorSpec& tensor) {
    return std::string(tensor.shape.empty() ? "a rank-zero tensor is not allowed here" : "");
  });
}

std::string inner_dimensions(const Compared& all) {
  const auto same = [](const TensorSpec& a, const TensorSpec& b) {
    return a.shape.size() == b.shape.size() &&
           std::equal(a.shape.begin() + 1, a.shape.end(), b.shape.begin() + 1);
  };
  const std::string text =
      compare_tensors(all, after_kind("tensor shapes"), same, tensor_shape_text);
  return text.empty() ? text : text + "; only the first dimension may differ";
}

std::string splits(const Compared& all) {
  const size_t set_size = all.size();
  return each_tensor(
      all, [set_size](const TensorSpec& tensor) { return splits_problem(tensor, set_size); });
}

std::string roots(const Compared& all) {
  return compare(
      all, after_kind("root ranks"),
      [](const Request& a, const Request& b) { return a.root_rank == b.root_rank; },
      [](const Request& request) { return concat("root rank ", request.root_rank); });
}

std::string process_set_ranks(const Compared& all) {
  const auto same = [](const Request& a, const Request& b) { return a.ranks == b.ranks; };
  return compare(all, {"process set ranks"}, same, ranks_text);
}

std::string process_set_ids(const Compared& all) {
  const auto same = [](const Request& a, const Request& b) { return a.ranks == b.ranks; };
  return compare(all, {"process set ids"}, same, ranks_text);
}

std::string devices(const Compared& all) {
  return compare(
      all, after_kind("CPU/GPU device selection"),
      [](const Request& a, const Request& b) { return (a.device < 0) == (b.device < 0); },
      [](const Request& request) {
        return request.device < 0 ? std::string("CPU") : concat("GPU ", request.device);
      });
}

enum class After : uint8_t {
  kSuccess,  // only if no rule before it failed
  kAnything  // adds its text to that of an earlier failure
};

struct Rule {
  KindSet kinds;
  std::string (*problem)(const Compared&);
  After after = After::kSuccess;
};

// The order is part of the behaviour: where several things are wrong, old programs and their tests
// expect the first of these. There is no limit by fusion buffer: reductions are scaled without one.
constexpr Rule kRules[] = {
    {kEveryKind, group_sizes},
    {kEveryKind, member_names},
    {kEveryKind, dtypes},
    {kEveryKind, kinds},
    {kSameShape, shapes},
    {kScaled, factors},
    {{Kind::kAllreduce, Kind::kReducescatter}, reduce_ops},
    {kEveryKind, wire_dtypes},
    {kWorksWithJoined.complement(), joined_ranks, After::kAnything},
    {kByRows, scalars, After::kAnything},
    {{Kind::kAllgather, Kind::kAlltoall}, inner_dimensions},
    {{Kind::kAlltoall}, splits},
    {{Kind::kBroadcast}, roots},
    {{Kind::kProcessSetAdd}, process_set_ranks},
    {{Kind::kProcessSetRemove}, process_set_ids},
    {kEveryKind, devices},
};

std::string first_problem(const Compared& all) {
  std::string found;
  for (const Rule& rule : kRules) {
    if (!rule.kinds.contains(all.first.kind)) continue;
    if (!found.empty() && rule.after == After::kSuccess) continue;
    const std::string text = rule.problem(all);
    if (text.empty()) continue;
    found += found.empty() ? text : "; " + text;
  }
  return found;
}

}  // namespace

Result<Plan> validate(const ValidateInput& input) {
  HVD_ASSERT(input.requests.size() == input.global_ranks.size(), "one request per set rank");
  const auto present = std::ranges::find_if(input.requests, [](auto* r) { return r != nullptr; });
  HVD_ASSERT(present != input.requests.end(), "without a request there is nothing to negotiate");
  const Compared all = {.input = input,
                        .first_rank = static_cast<size_t>(present - input.requests.begin()),
                        .first = **present};
  if (const std::string text = first_problem(all); !text.empty()) {
    return precondition_error(concat(wire::kind_lower_name(all.first.kind), ' ',
                                     wire::display_name(all.first, input.ordinal), ": ", text));
  }
  return make_plan(all.first, input.requests);
}

}  // namespace hvd::negotiate
