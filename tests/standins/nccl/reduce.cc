#include <cmath>
#include <cstring>
#include <type_traits>

#include "tests/standins/nccl/communicator.h"

namespace standin::nccl {
namespace {

enum Op { kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4 };

struct Half {
  _Float16 value;
  operator float() const { return static_cast<float>(value); }
  explicit Half(float f) : value(static_cast<_Float16>(f)) {}
};
struct Bfloat {
  uint16_t bits;
  operator float() const {
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float f;
    std::memcpy(&f, &wide, sizeof f);
    return f;
  }
  explicit Bfloat(float f) {
    uint32_t wide;
    std::memcpy(&wide, &f, sizeof wide);
    bits = static_cast<uint16_t>((wide + 0x7fff + ((wide >> 16) & 1)) >> 16);
  }
};

template <typename T>
void reduce_as(int op, double factor, const std::byte* const* sources, int size, void* target,
               size_t count) {
  using Wide = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>, float, T>;
  auto* out = static_cast<T*>(target);
  for (size_t i = 0; i < count; ++i) {
    Wide sum{};
    for (int r = 0; r < size; ++r) {
      Wide x = static_cast<Wide>(reinterpret_cast<const T*>(sources[r])[i]);
      if (factor != 1.0) x = static_cast<Wide>(static_cast<double>(x) * factor);
      if (r == 0) {
        sum = x;
      } else if (op == kProd) {
        sum = static_cast<Wide>(sum * x);
      } else if (op == kMax) {
        sum = x > sum ? x : sum;
      } else if (op == kMin) {
        sum = x < sum ? x : sum;
      } else {
        sum = static_cast<Wide>(sum + x);
      }
    }
    if (op == kAvg) sum = static_cast<Wide>(sum / static_cast<Wide>(size));
    out[i] = static_cast<T>(sum);
  }
}

}  // namespace

size_t dtype_bytes(int dtype) {
  static constexpr size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return kBytes[dtype];
}

void reduce(int dtype, int op, double factor, const std::byte* const* sources, int size,
            void* target, size_t count) {
  switch (dtype) {
    case 0:
      return reduce_as<int8_t>(op, factor, sources, size, target, count);
    case 1:
      return reduce_as<uint8_t>(op, factor, sources, size, target, count);
    case 2:
      return reduce_as<int32_t>(op, factor, sources, size, target, count);
    case 3:
      return reduce_as<uint32_t>(op, factor, sources, size, target, count);
    case 4:
      return reduce_as<int64_t>(op, factor, sources, size, target, count);
    case 5:
      return reduce_as<uint64_t>(op, factor, sources, size, target, count);
    case 6:
      return reduce_as<Half>(op, factor, sources, size, target, count);
    case 7:
      return reduce_as<float>(op, factor, sources, size, target, count);
    case 8:
      return reduce_as<double>(op, factor, sources, size, target, count);
    case 9:
      return reduce_as<Bfloat>(op, factor, sources, size, target, count);
    default:
      return;
  }
}

}  // namespace standin::nccl
