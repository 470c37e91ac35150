// choice.h - whether a job asks for Gloo, and whether it gets it: only if every rank can. Pure.
#pragma once

#include <span>
#include <string>

#include "base/settings.h"
#include "base/status.h"

namespace hvd::gloo {

// HOROVOD_CPU_OPERATIONS=gloo, or HOROVOD_CONTROLLER=gloo where the other says nothing.
bool is_wanted(const Environment& environment);

// What one rank says about itself.
struct Offer {
  bool is_wanted = false;
  std::string problem{};  // why it cannot be had here; empty: it can

  bool operator==(const Offer&) const = default;
};

struct RankOffer {
  std::string who;  // "rank 3 (host b)"
  Offer offer;
};

struct Decision {
  bool uses_gloo = false;
  std::string note{};  // for people, where it was asked for and is not used
};
// The same on all ranks, from what all of them said, in the order of ranks. PRECONDITION_ERROR:
// everything between hosts is to be encrypted, which Gloo cannot do.
Result<Decision> decide(std::span<const RankOffer> ranks, bool encrypts_everything);

}  // namespace hvd::gloo
