// mean_format.h - quotients of sums of float32 and float64, above all averages.
// A sum that was rounded on its way, divided and rounded again, is not always what it was made of,
// not even where that was the same number every time: of float32, one number in six changes when
// three equal ones are added and divided by 3. So an element that all sources have in common, bit
// for bit, is its own average, whatever their number. Comparing is cheaper than adding up in more
// digits. (16-bit floats need neither: float32 holds the sum of 8192 equal ones exactly.)
// Internal linkage (see half.h). Pure; any thread.
#pragma once

#include "reduce/half.h"
#include "reduce/kernels.h"
#include "reduce/vector.h"

namespace hvd {
namespace {

template <class Float>
struct MeanPost {
  using Word = typename WordOf<Float>::type;
  Float divisor;
  Float factor;
  Word differ;  // not 0: the quotient is not the average of the sources

  explicit MeanPost(const ReduceArgs& args)
      : divisor(static_cast<Float>(args.post.divisor)),
        factor(static_cast<Float>(args.post.factor)),
        differ(args.post.divisor != static_cast<int64_t>(args.source_count)) {}
};

// `Value` is a number or a vector of them, `Word` the integers of the same size.
template <class Value, class Word>
struct MeanOf {
  Value sum;
  Value first;
  Word differ;  // the bits in which some source is not like the first

  [[gnu::always_inline]] static MeanOf of(Value value) { return {value, value, Word{}}; }
  [[gnu::always_inline]] MeanOf plus(Value value) const {
    return {sum + value, first, differ | (same_bits<Word>(value) ^ same_bits<Word>(first))};
  }
  template <class Post>
  [[gnu::always_inline]] Value result(const Post& post) const {
    return ((differ | post.differ) == 0 ? first : sum / post.divisor) * post.factor;
  }
};

template <class Isa, class Float>
struct MeanFormat {
  static constexpr size_t kElementBytes = sizeof(Float);
  static constexpr size_t kPackBytes = Isa::kVectorBytes;
  using Post = MeanPost<Float>;
  using Floats = Vector<Isa, Float>;
  using Pack = MeanOf<Floats, Vector<Isa, typename Post::Word>>;
  using Scalar = MeanOf<Float, typename Post::Word>;

  [[gnu::always_inline]] static Pack load(const void* address) {
    return Pack::of(load_as<Floats>(address));
  }
  [[gnu::always_inline]] static void store(void* address, Pack pack) {
    store_as(address, pack.sum);
  }
  static Scalar load_one(const void* address) { return Scalar::of(load_as<Float>(address)); }
  static void store_one(void* address, Scalar value) { store_as(address, value.sum); }

  // Nothing but sums is divided.
  template <class Op, class Value>
  [[gnu::always_inline]] static Value combine(Value a, Value b) {
    return a.plus(b.sum);
  }
  template <class Value>
  [[gnu::always_inline]] static Value scaled(Value value, const Post& post) {
    return Value::of(value.result(post));
  }
};

}  // namespace
}  // namespace hvd
