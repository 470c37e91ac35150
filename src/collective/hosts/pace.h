// pace.h - how far the blocks of a reduction between hosts overlap, and finding out which way is
// quicker. In lockstep little is under way, so that bytes stay in the caches: best where moving
// them costs processor time (virtual networks, a few hosts of one machine). Deep keeps enough under
// way to hide the delay of a real network. No figure of the network tells in advance which one
// wins, so both are tried. Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace hvd::collective::hosts {

enum class Pace { kLockstep, kDeep };

struct PaceShape {
  uint64_t in_flight;  // blocks that are under way at once
  uint64_t lag;        // the result of a block follows so many blocks later; less than in_flight
  size_t part_bytes;   // of a block that one host combines
};
PaceShape shape_of(Pace pace);

// Works of similar size share a choice.
inline constexpr int kPaceClasses = 3;
// -1: too small to matter; always in lockstep.
int pace_class_of(uint64_t bytes);

// The choices of all classes: bit c stands for deep.
using PaceMask = uint16_t;
inline Pace pace_in(PaceMask mask, int pace_class) {
  if (pace_class < 0) return Pace::kLockstep;
  return (mask >> pace_class & 1) != 0 ? Pace::kDeep : Pace::kLockstep;
}

// Tries both a few times, keeps the quicker one, and looks at the other again now and then.
class PaceChooser {
 public:
  void report(int pace_class, Pace pace, uint64_t bytes, Nanoseconds took);
  PaceMask choices() const;

 private:
  static constexpr int kSamples = 3;  // the best of the last ones counts: late peers cost time too
  struct History {
    std::array<double, kSamples> seconds_per_byte{};
    int count = 0;
    double best() const;
  };
  struct Class {
    std::array<History, 2> of;  // by Pace
    int works = 0;
    Pace choice() const;
  };
  std::array<Class, kPaceClasses> classes_;
};

}  // namespace hvd::collective::hosts
