#include "collective/hosts/pace.h"

#include <algorithm>

namespace hvd::collective::hosts {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr int kRetryEvery = 200;  // works; a wrong guess costs less than 1 % of the time
// Deep must be clearly better: it also takes memory and cache from the rest of the program.
constexpr double kClearly = 0.95;

size_t index_of(Pace pace) { return static_cast<size_t>(pace); }

}  // namespace

PaceShape shape_of(Pace pace) {
  // Parts are large enough that bytes move in bulk and not in answers to each other.
  if (pace == Pace::kDeep) return {.in_flight = 4, .lag = 2, .part_bytes = 256 << 10};
  return {.in_flight = 1, .lag = 0, .part_bytes = 128 << 10};
}

int pace_class_of(uint64_t bytes) {
  if (bytes < kMiB) return -1;
  if (bytes < 8 * kMiB) return 0;
  return bytes < 64 * kMiB ? 1 : 2;
}

double PaceChooser::History::best() const {
  const int known = std::min(count, kSamples);
  return *std::min_element(seconds_per_byte.begin(), seconds_per_byte.begin() + known);
}

void PaceChooser::report(int pace_class, Pace pace, uint64_t bytes, Nanoseconds took) {
  if (pace_class < 0) return;
  Class& own = classes_[static_cast<size_t>(pace_class)];
  History& history = own.of[index_of(pace)];
  history.seconds_per_byte[static_cast<size_t>(history.count++ % kSamples)] =
      static_cast<double>(took.count()) / static_cast<double>(bytes);
  ++own.works;
}

Pace PaceChooser::Class::choice() const {
  const History& lockstep = of[index_of(Pace::kLockstep)];
  const History& deep = of[index_of(Pace::kDeep)];
  if (lockstep.count < kSamples) return Pace::kLockstep;
  if (deep.count < kSamples) return Pace::kDeep;
  const bool deep_wins = deep.best() < kClearly * lockstep.best();
  const bool looks_again = works % kRetryEvery == 0;
  return deep_wins != looks_again ? Pace::kDeep : Pace::kLockstep;
}

PaceMask PaceChooser::choices() const {
  PaceMask mask = 0;
  for (int c = 0; c < kPaceClasses; ++c) {
    if (classes_[static_cast<size_t>(c)].choice() == Pace::kDeep)
      mask = static_cast<PaceMask>(mask | 1 << c);
  }
  return mask;
}

}  // namespace hvd::collective::hosts
