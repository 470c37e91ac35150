// select.h - which backend runs a work: the first of them with a row for it. Only values that all
// members agreed on may be asked about, so that all members choose alike. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "collective/capability.h"

namespace hvd::collective {

// What decides about the route of a work.
struct WorkTraits {
  WorkKind kind = WorkKind::kReduce;
  DTypes dtypes;  // as they travel; of reductions
  ReduceOps ops;  // of reductions
  uint64_t bytes = 0;
  Device device;
  uint64_t library_bytes = 0;  // stands for the least size of rows that have one; 0: it does not
  bool has_objects = false;    // bytes that may be objects (Exchange::moves_bytes)
};
WorkTraits traits_of(const Work& work);

struct Candidate {
  std::string_view name;
  const Capabilities* capabilities;
};

// The place of the first candidate that can run it; nothing: none can.
std::optional<size_t> select(const WorkTraits& work, std::span<const Candidate> candidates);

// "hosts: reduce, 4096 bytes of float32, host memory; library takes 65536 bytes or more"
std::string explain_route(const WorkTraits& work, std::span<const Candidate> candidates);

}  // namespace hvd::collective
