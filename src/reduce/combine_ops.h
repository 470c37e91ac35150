// combine_ops.h - how two values become one, for one number and for a vector of them alike.
// `a` is the running value. Internal linkage (see half.h). Pure; any thread.
#pragma once

#include <cstdint>
#include <type_traits>

namespace hvd {
namespace {

// The type in which + and * of `Value` wrap instead of being undefined.
template <class Value>
struct Wrapping {
  using type = Value;  // floating point and vectors of it
};
template <class Value>
requires std::is_integral_v<Value>
struct Wrapping<Value> {
  using type = uint64_t;
};
template <class Value>
requires(!std::is_arithmetic_v<Value> &&
         std::is_integral_v<std::remove_cvref_t<decltype(Value{}[0])>>) struct Wrapping<Value> {
  typedef std::make_unsigned_t<std::remove_cvref_t<decltype(Value{}[0])>> type
      __attribute__((vector_size(sizeof(Value))));
};

struct Sum {
  template <class Value>
  [[gnu::always_inline]] static Value apply(Value a, Value b) {
    using Wide = typename Wrapping<Value>::type;
    return (Value)((Wide)a + (Wide)b);  // a cast in C style: it also converts between vectors
  }
};
struct Product {
  template <class Value>
  [[gnu::always_inline]] static Value apply(Value a, Value b) {
    using Wide = typename Wrapping<Value>::type;
    return (Value)((Wide)a * (Wide)b);
  }
};
struct Min {
  template <class Value>
  [[gnu::always_inline]] static Value apply(Value a, Value b) {
    return b < a ? b : a;
  }
};
struct Max {
  template <class Value>
  [[gnu::always_inline]] static Value apply(Value a, Value b) {
    return a < b ? b : a;
  }
};
// bool, whose values are 0 and 1 once loaded.
struct Or {
  template <class Value>
  [[gnu::always_inline]] static Value apply(Value a, Value b) {
    return a | b;
  }
};
struct And {
  template <class Value>
  [[gnu::always_inline]] static Value apply(Value a, Value b) {
    return a & b;
  }
};

}  // namespace
}  // namespace hvd
