// capability.h - what a backend can run, as data: selection reads it, the conformance suite proves
// it. Pure; any thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "base/device.h"
#include "base/dtype.h"
#include "collective/work.h"

namespace hvd::collective {

// A set of values of an enumeration with at most 32 members.
template <typename Enum>
class EnumSet {
 public:
  constexpr EnumSet() = default;
  constexpr EnumSet(std::initializer_list<Enum> values) {
    for (const Enum value : values) add(value);
  }
  static constexpr EnumSet first(int count) {
    EnumSet all;
    all.bits_ = (uint32_t{1} << count) - 1;
    return all;
  }
  constexpr void add(Enum value) { bits_ |= uint32_t{1} << static_cast<int>(value); }
  constexpr bool contains(Enum value) const { return (bits_ >> static_cast<int>(value) & 1) != 0; }
  constexpr bool contains(const EnumSet& others) const { return (others.bits_ & ~bits_) == 0; }
  constexpr bool is_empty() const { return bits_ == 0; }
  friend constexpr bool operator==(const EnumSet&, const EnumSet&) = default;

 private:
  uint32_t bits_ = 0;
};

using DTypes = EnumSet<DType>;
using ReduceOps = EnumSet<ReduceOp>;

inline constexpr DTypes kAllDTypes = DTypes::first(kDTypeCount);
inline constexpr ReduceOps kAllReduceOps = ReduceOps::first(kReduceOpCount);

// One row: works of this kind in memory of this kind, where every dtype and operation is listed.
struct Capability {
  WorkKind kind = WorkKind::kReduce;
  DTypes dtypes = kAllDTypes;
  ReduceOps ops = kAllReduceOps;
  DeviceKind device = DeviceKind::kHost;
  uint64_t least_bytes = 0;   // shorter works are left to others
  bool takes_objects = true;  // whether it protects bytes that may be objects
};

// A backend's table. Rows are alternatives: a work fits if it fits one of them.
using Capabilities = std::vector<Capability>;

}  // namespace hvd::collective
