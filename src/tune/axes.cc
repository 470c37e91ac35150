#include "tune/axes.h"

#include <algorithm>
#include <cstdlib>

namespace hvd::tune {
namespace {

constexpr int64_t kKiB = 1 << 10;

// Levels whose values lie in [least, most]; home is the one closest to `own`.
Axis ordered_axis(Knob knob, int64_t own, int64_t least = 0, int64_t most = INT64_MAX) {
  const KnobInfo& info = info_of(knob);
  Axis axis{knob, {}, 0};
  int64_t closest = INT64_MAX;
  for (size_t level = 1; level < info.level_count(); ++level) {
    const int64_t value = info.values[level - 1];
    if (value < least || value > most) continue;
    if (std::abs(value - own) < closest) {
      closest = std::abs(value - own);
      axis.home = axis.levels.size();
    }
    axis.levels.push_back(static_cast<uint8_t>(level));
  }
  return axis;
}

// "Automatic" is one of the choices.
Axis choice_axis(Knob knob) {
  Axis axis{knob, {}, 0};
  for (size_t level = 0; level < info_of(knob).level_count(); ++level)
    axis.levels.push_back(static_cast<uint8_t>(level));
  return axis;
}

// What tasks cut works into by themselves, and the most they can take (collective/*).
Axis chunk_axis(const Defaults& defaults) {
  if (defaults.hosts > 1) return ordered_axis(Knob::kChunkBytes, 128 * kKiB, 0, 128 * kKiB);
  if (defaults.ranks == 2) return ordered_axis(Knob::kChunkBytes, 128 * kKiB, 0, 256 * kKiB);
  return ordered_axis(Knob::kChunkBytes, 512 * kKiB);
}

}  // namespace

std::vector<Axis> axes_for(const Defaults& defaults) {
  std::vector<Axis> axes;
  if (defaults.ranks < 2) return axes;
  const bool has_network = defaults.hosts > 1;
  if (!defaults.has_one_rank_per_host) axes.push_back(chunk_axis(defaults));
  if (has_network) {
    axes.push_back(choice_axis(Knob::kPace));
    // Where hosts have several ranks the chunk decides about parts.
    if (defaults.has_one_rank_per_host) axes.push_back(ordered_axis(Knob::kPartBytes, 128 * kKiB));
  }
  axes.push_back(ordered_axis(Knob::kSmallBytes, defaults.small_bytes));
  if (!defaults.spin_is_fixed) axes.push_back(ordered_axis(Knob::kSpinCount, defaults.spin_count));
  if (!defaults.progress_is_fixed) axes.push_back(choice_axis(Knob::kProgress));
  if (!defaults.yield_is_fixed)
    axes.push_back(ordered_axis(Knob::kYieldCount, defaults.yield_count));
  if (has_network) axes.push_back(ordered_axis(Knob::kOneShotBytes, 16 * kKiB));
  return axes;
}

}  // namespace hvd::tune
