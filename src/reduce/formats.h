// formats.h - how each element type is loaded, computed with and stored.
// A Format offers a Pack (the elements of one vector of memory), a Scalar (one element), and for
// both load, store, combine and scaled; the loops of reduce_loop.h know nothing else.
// Internal linkage (see half.h). Pure; any thread.
#pragma once

#include "reduce/half.h"
#include "reduce/mean_format.h"
#include "reduce/post_scale.h"
#include "reduce/vector.h"

namespace hvd {
namespace {

// Computed in the type in which it lies in memory.
template <class Isa, class Element, class PostType>
struct PlainFormat {
  static constexpr size_t kElementBytes = sizeof(Element);
  static constexpr size_t kPackBytes = Isa::kVectorBytes;
  using Pack = Vector<Isa, Element>;
  using Scalar = Element;
  using Post = PostType;

  static Pack load(const void* address) { return load_as<Pack>(address); }
  static void store(void* address, Pack pack) { store_as(address, pack); }
  static Scalar load_one(const void* address) { return load_as<Element>(address); }
  static void store_one(void* address, Scalar value) { store_as(address, value); }

  template <class Op>
  [[gnu::always_inline]] static Pack combine(Pack a, Pack b) {
    return Op::apply(a, b);
  }
  template <class Op>
  [[gnu::always_inline]] static Scalar combine(Scalar a, Scalar b) {
    return Op::apply(a, b);
  }
  static Scalar scaled(Scalar value, const Post& post) { return post.apply(value); }
  // Not inlined: it is long, and there are very many loops.
  [[gnu::noinline]] static Pack scaled(Pack pack, const Post& post) {
    Element elements[kPackBytes / kElementBytes];
    store_as(elements, pack);
    for (Element& element : elements) element = post.apply(element);
    return load_as<Pack>(elements);
  }
};

template <class Isa, class Integer>
struct IntegerFormat : PlainFormat<Isa, Integer, IntegerPost<Integer>> {};

template <class Isa, class Float>
struct FloatFormat : PlainFormat<Isa, Float, FloatPost<Float>> {
  using Base = PlainFormat<Isa, Float, FloatPost<Float>>;
  using Mean = MeanFormat<Isa, Float>;  // for sums that are divided
  using Base::scaled;
  [[gnu::always_inline]] static typename Base::Pack scaled(typename Base::Pack pack,
                                                           const typename Base::Post& post) {
    return post.apply(pack);
  }
};

// Any byte but 0 counts as true, and is loaded as 1.
template <class Isa>
struct BoolFormat : PlainFormat<Isa, uint8_t, BoolPost> {
  using Pack = Vector<Isa, uint8_t>;
  static Pack load(const void* address) {
    return (Pack)(load_as<Pack>(address) != 0) & 1;  // a comparison gives 0 or all ones
  }
  static uint8_t load_one(const void* address) { return load_as<uint8_t>(address) != 0; }
};

// 16-bit floats: a pack is two vectors of float32. `Halves` says which element goes where.
template <class Isa, class Halves>
struct HalfFormat {
  static constexpr size_t kElementBytes = 2;
  static constexpr size_t kPackBytes = Isa::kVectorBytes;
  using Floats = Vector<Isa, float>;
  struct Pack {
    Floats first;
    Floats second;
  };
  using Scalar = float;
  using Post = FloatPost<float>;

  [[gnu::always_inline]] static Pack load(const void* address) {
    Pack pack;
    Halves::load_pack(address, &pack.first, &pack.second);
    return pack;
  }
  [[gnu::always_inline]] static void store(void* address, Pack pack) {
    Halves::store_pack(address, pack.first, pack.second);
  }
  static Scalar load_one(const void* address) {
    return Halves::widen_one(load_as<uint16_t>(address));
  }
  static void store_one(void* address, Scalar value) {
    store_as(address, Halves::narrow_one(value));
  }

  template <class Op>
  [[gnu::always_inline]] static Pack combine(Pack a, Pack b) {
    return {Op::apply(a.first, b.first), Op::apply(a.second, b.second)};
  }
  template <class Op>
  [[gnu::always_inline]] static Scalar combine(Scalar a, Scalar b) {
    return Op::apply(a, b);
  }
  static Scalar scaled(Scalar value, const Post& post) { return post.apply(value); }
  [[gnu::always_inline]] static Pack scaled(Pack pack, const Post& post) {
    return {post.apply(pack.first), post.apply(pack.second)};
  }
};

// float16 with the conversions of the instruction set.
template <class Isa>
struct Float16Halves {
  using Floats = Vector<Isa, float>;
  static constexpr size_t kHalfPackBytes = Isa::kVectorBytes / 2;

  [[gnu::always_inline]] static Floats widen(const void* address) {
    return Isa::widen_float16(load_as<HalfVector<Isa, uint16_t>>(address));
  }
  [[gnu::always_inline]] static void narrow(void* address, Floats floats) {
    store_as(address, Isa::narrow_float16(floats));
  }
  [[gnu::always_inline]] static void load_pack(const void* address, Floats* first, Floats* second) {
    *first = widen(address);
    *second = widen(static_cast<const char*>(address) + kHalfPackBytes);
  }
  [[gnu::always_inline]] static void store_pack(void* address, Floats first, Floats second) {
    narrow(address, first);
    narrow(static_cast<char*>(address) + kHalfPackBytes, second);
  }
  static float widen_one(uint16_t half) { return Isa::widen_float16_one(half); }
  static uint16_t narrow_one(float value) { return Isa::narrow_float16_one(value); }
};

template <class Isa>
struct Bfloat16Halves {
  using Floats = Vector<Isa, float>;
  using Words = Vector<Isa, uint32_t>;
  using Shorts = HalfVector<Isa, uint16_t>;

  [[gnu::always_inline]] static Floats widen(const void* address) {
    return widen_bfloat16<Floats>(__builtin_convertvector(load_as<Shorts>(address), Words));
  }
  [[gnu::always_inline]] static void narrow(void* address, Floats floats) {
    store_as(address, __builtin_convertvector(narrow_bfloat16(floats), Shorts));
  }
  // A reduction does not care about the order of elements in a pack: taking the low and the high
  // half of each 32-bit word apart needs no shuffle, neither here nor on the way back.
  [[gnu::always_inline]] static void load_pack(const void* address, Floats* first, Floats* second) {
    const Words words = load_as<Words>(address);
    *first = same_bits<Floats>(words << 16);
    *second = same_bits<Floats>(words & 0xffff0000u);
  }
  [[gnu::always_inline]] static void store_pack(void* address, Floats first, Floats second) {
    store_as(address, (round_to_bfloat16(first) >> 16) | (round_to_bfloat16(second) & 0xffff0000u));
  }
  static float widen_one(uint16_t half) { return bfloat16_to_float(half); }
  static uint16_t narrow_one(float value) { return float_to_bfloat16(value); }
};

template <class Isa>
using Float16Format = HalfFormat<Isa, Float16Halves<Isa>>;
template <class Isa>
using Bfloat16Format = HalfFormat<Isa, Bfloat16Halves<Isa>>;

}  // namespace
}  // namespace hvd
