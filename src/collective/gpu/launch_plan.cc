#include "collective/gpu/launch_plan.h"

#include <algorithm>

#include "base/bytes.h"

namespace hvd::collective::gpu {
namespace {

constexpr uint64_t kScratchAlignment = 256;

// How a run is reduced.
struct Recipe {
  Reduction reduction;
  DType dtype = DType::kFloat32;  // of what NCCL sees
  bool converts = false;          // which is not the user's
  std::optional<KernelId> in = {}, out = {};
  Scale pre = {}, post = {};  // applied by our kernels
};

bool is_half(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBfloat16; }

// Sums of numbers with few digits are scaled before they are added: no sum is larger than the
// result.
Scale folded(const Numeric& n) {
  return {n.pre.factor * n.post.factor, n.pre.divisor * n.post.divisor};
}

// NCCL multiplies by the factor as an element of the dtype: 1/3 in bfloat16 is wrong by 0.2 %.
bool is_exact(const Numeric& n) {
  const Scale scale = folded(n);
  const auto factor = static_cast<float>(scale.factor / static_cast<double>(scale.divisor));
  if (n.dtype == DType::kFloat16) return Float16Bits::widen(Float16Bits::narrow(factor)) == factor;
  if (n.dtype != DType::kBfloat16) return true;
  return Bfloat16Bits::widen(Bfloat16Bits::narrow(factor)) == factor;
}

// Factors that NCCL does not apply, or not well: before and after it, in place.
std::optional<Recipe> scaled_recipe(const Numeric& n, int size) {
  Numeric plain = n;
  plain.pre = plain.post = Scale{};
  const auto reduction = reduction_of(plain, size);
  const auto kernel = scale_kernel(n.dtype);
  if (!reduction || !kernel) return std::nullopt;
  Recipe recipe{.reduction = *reduction, .dtype = n.dtype};
  const bool is_folded = is_half(n.dtype) && n.op == ReduceOp::kSum;
  recipe.pre = is_folded ? folded(n) : n.pre;
  recipe.post = is_folded ? Scale{} : n.post;
  if (!recipe.pre.is_identity()) recipe.in = kernel;
  if (!recipe.post.is_identity()) recipe.out = kernel;
  return recipe;
}

// float32 that travels as a narrower type.
std::optional<Recipe> converted_recipe(const Numeric& n, int size) {
  Numeric narrow = n;
  narrow.dtype = n.slot_dtype;
  narrow.pre = narrow.post = Scale{};
  const auto reduction = reduction_of(narrow, size);
  const auto in = narrow_kernel(n.slot_dtype), out = widen_kernel(n.slot_dtype);
  if (n.dtype != DType::kFloat32 || n.op != ReduceOp::kSum || !reduction || !in || !out)
    return std::nullopt;
  return Recipe{.reduction = *reduction,
                .dtype = n.slot_dtype,
                .converts = true,
                .in = in,
                .out = out,
                .pre = folded(n),
                .post = Scale{}};
}

std::optional<Recipe> recipe_in_one(const Numeric& n, int size, const Abilities& abilities) {
  const auto direct = reduction_of(n, size);
  if (direct && (is_exact(n) || !abilities.has_kernels))
    return Recipe{.reduction = *direct, .dtype = n.dtype};
  if (!abilities.has_kernels) return std::nullopt;
  return n.slot_dtype == n.dtype ? scaled_recipe(n, size) : converted_recipe(n, size);
}

// NCCL divides by the members of one communicator: with levels, averages are sums with a factor.
std::optional<Recipe> recipe_of(const Numeric& n, int size, const Abilities& abilities,
                                Levels levels) {
  auto recipe = recipe_in_one(n, size, abilities);
  if (!recipe || levels == Levels::kNone) return recipe;
  if (recipe->reduction.op == Reduction::Op::kAverage) {
    if (is_floating(n.dtype)) {
      recipe->reduction.op = Reduction::Op::kSum;
      recipe->reduction.factor = 1.0 / size;
    } else {
      recipe = abilities.has_kernels ? scaled_recipe(n, size) : std::nullopt;
    }
  }
  const bool adds_zeros = levels == Levels::kHierarchical;
  if (recipe && adds_zeros && !zero_is_neutral(recipe->reduction)) return std::nullopt;
  return recipe;
}

class Planner {
 public:
  Planner(LaunchPlan& plan, std::byte* scratch) : plan_(plan), scratch_(scratch) {}

  void add_run(const Run& run, const Recipe& recipe, const Abilities& abilities) {
    const auto small = [&](const Piece& p) {
      return p.count * run.numeric.element_bytes() <= kPackedPieceBytes;
    };
    const bool packs = abilities.packs && abilities.has_kernels &&
                       std::count_if(run.pieces.begin(), run.pieces.end(), small) > 1;
    std::vector<const Piece*> together;
    uint64_t bytes = 0;
    for (const Piece& piece : run.pieces) {
      if (piece.count == 0) continue;
      const uint64_t more = align_up(piece.count * dtype_bytes(recipe.dtype), 16);
      const bool joins = recipe.converts || (packs && small(piece) && bytes + more <= kPackedBytes);
      if (!joins) {
        add_alone(piece, recipe);
        continue;
      }
      together.push_back(&piece);
      bytes += more;
    }
    if (!together.empty()) add_together(together, recipe);
  }

 private:
  // In the output: a factor before the sum has room there, and elements keep their size.
  void add_alone(const Piece& piece, const Recipe& recipe) {
    const std::byte* in = piece.in;
    if (recipe.in && piece.in != nullptr && piece.out != nullptr) {
      step(plan_.before, *recipe.in, recipe.pre)
          .segments.push_back({piece.in, piece.out, piece.count});
      in = piece.out;
    }
    plan_.calls.push_back({CallKind::kAllReduce, in, piece.out, piece.count, recipe.reduction});
    if (recipe.out && piece.out != nullptr)
      step(plan_.after, *recipe.out, recipe.post)
          .segments.push_back({piece.out, piece.out, piece.count});
  }

  // In the scratch, one behind the other; gaps for the alignment are summed as well.
  void add_together(const std::vector<const Piece*>& pieces, const Recipe& recipe) {
    const uint64_t element = dtype_bytes(recipe.dtype);
    const uint64_t begin = plan_.scratch_bytes;
    for (const Piece* piece : pieces) {
      std::byte* here = at(plan_.scratch_bytes);
      if (piece->in == nullptr) {
        plan_.zeros.push_back({here, piece->count * element});
      } else {
        step(plan_.before, recipe.in.value_or(copy_kernel(recipe.dtype)), recipe.pre)
            .segments.push_back({piece->in, here, piece->count});
      }
      if (piece->out != nullptr)
        step(plan_.after, recipe.out.value_or(copy_kernel(recipe.dtype)), recipe.post)
            .segments.push_back({here, piece->out, piece->count});
      plan_.scratch_bytes += align_up(piece->count * element, 16);
    }
    plan_.calls.push_back({CallKind::kAllReduce, at(begin), at(begin),
                           (plan_.scratch_bytes - begin) / element, recipe.reduction});
    plan_.scratch_bytes = align_up(plan_.scratch_bytes, kScratchAlignment);
  }

  std::byte* at(uint64_t offset) const { return scratch_ == nullptr ? nullptr : scratch_ + offset; }

  static KernelStep& step(std::vector<KernelStep>& steps, KernelId kernel, const Scale& scale) {
    if (steps.empty() || steps.back().kernel != kernel || steps.back().scale != scale)
      steps.push_back({kernel, scale, {}});
    return steps.back();
  }

  LaunchPlan& plan_;
  std::byte* const scratch_;
};

}  // namespace

bool can_launch(const Work& work, int size, const Abilities& abilities, Levels levels) {
  if (work.kind != WorkKind::kReduce) return levels == Levels::kNone && can_run(work, size);
  for (size_t r = 0; r < work.run_count; ++r) {
    if (!recipe_of(work.runs[r].numeric, size, abilities, levels)) return false;
  }
  return true;
}

LaunchPlan plan_launch(const Work& work, const Among& among, const Abilities& abilities,
                       std::byte* scratch) {
  LaunchPlan plan;
  if (work.kind != WorkKind::kReduce) {
    plan.calls = calls_of(work, among.size, among.me);
    return plan;
  }
  Planner planner(plan, scratch);
  for (size_t r = 0; r < work.run_count; ++r) {
    const Run& run = work.runs[r];
    const auto recipe = recipe_of(run.numeric, among.size, abilities, among.levels);
    planner.add_run(run, *recipe, abilities);
  }
  return plan;
}

}  // namespace hvd::collective::gpu
