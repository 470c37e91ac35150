// convert_loop.h - float32 <-> 16-bit floats, scaled on the way. Source and destination do not
// overlap. Internal linkage (see half.h). Pure; any thread.
#pragma once

#include "reduce/formats.h"

namespace hvd {
namespace {

template <class Isa, class Halves>
void narrow_all(void* dst, const float* src, size_t count, float quotient) {
  using Floats = Vector<Isa, float>;
  constexpr size_t kLanes = Isa::kVectorBytes / sizeof(float);
  char* out = static_cast<char*>(dst);
  const auto step = [&](size_t at) {
    Halves::narrow(out + at * sizeof(uint16_t), load_as<Floats>(src + at) * quotient);
  };
  if (count >= kLanes) {
    for (size_t at = 0; at < count - kLanes; at += kLanes) step(at);
    return step(count - kLanes);
  }
  for (size_t at = 0; at < count; ++at) {
    const float value = load_as<float>(src + at) * quotient;
    store_as(out + at * sizeof(uint16_t), Halves::narrow_one(value));
  }
}

template <class Isa, class Halves>
void widen_all(float* dst, const void* src, size_t count, float quotient) {
  constexpr size_t kLanes = Isa::kVectorBytes / sizeof(float);
  const char* in = static_cast<const char*>(src);
  const auto step = [&](size_t at) {
    store_as(dst + at, Halves::widen(in + at * sizeof(uint16_t)) * quotient);
  };
  if (count >= kLanes) {
    for (size_t at = 0; at < count - kLanes; at += kLanes) step(at);
    return step(count - kLanes);
  }
  for (size_t at = 0; at < count; ++at) {
    const uint16_t half = load_as<uint16_t>(in + at * sizeof(uint16_t));
    store_as(dst + at, Halves::widen_one(half) * quotient);
  }
}

}  // namespace
}  // namespace hvd
