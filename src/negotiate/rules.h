// rules.h - what the two validators share: sets of kinds, names of group members, alltoall splits.
// Internal to negotiate/. A rule answers with a problem, the empty text when there is none, so that
// a request in order costs no allocation. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "wire/request.h"

namespace hvd::negotiate {

// One bit per kind.
class KindSet {
 public:
  constexpr KindSet(std::initializer_list<wire::Kind> kinds) {
    for (wire::Kind kind : kinds) bits_ |= bit(kind);
  }
  constexpr bool contains(wire::Kind kind) const { return (bits_ & bit(kind)) != 0; }
  constexpr KindSet complement() const {
    KindSet out{};
    out.bits_ = ~bits_;
    return out;
  }

 private:
  static constexpr uint32_t bit(wire::Kind kind) { return 1u << static_cast<int>(kind); }
  uint32_t bits_ = 0;
};
inline constexpr KindSet kEveryKind = KindSet{}.complement();

// "tensor 'b': " for a member of a group, nothing for the only tensor of a request.
std::string member_label(const wire::Request& request, size_t index);

// Whether an alltoall tensor of at least one dimension can be dealt out to `set_size` ranks.
std::string splits_problem(const wire::TensorSpec& tensor, size_t set_size);
// Rows for each set rank of a tensor without splits_problem, added at the end of `out`.
void append_splits(const wire::TensorSpec& tensor, size_t set_size, std::vector<int32_t>& out);

}  // namespace hvd::negotiate
