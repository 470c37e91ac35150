// surface.h - speeds that depend on a tuning as those of real jobs do: a best level for each knob,
// losses that multiply, flat places, knobs that depend on each other, noise and drift.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "tune/search.h"

namespace hvd::tune::testing {

struct SurfaceShape {
  double noise = 0.02;      // standard deviation of a sample
  double drift = 0;         // relative change per sample
  double steepness = 0.12;  // lost per level away from the best
  double flat_levels = 0;   // so far away costs nothing
  double interaction = 0;   // of neighbouring knobs
  double outliers = 0;      // share of samples that take twice as long
};

class Surface {
 public:
  Surface(const std::vector<Axis>& axes, uint64_t seed, const SurfaceShape& shape)
      : axes_(axes), shape_(shape), random_(seed) {
    for (const Axis& axis : axes_)
      best_.push_back(static_cast<double>(random_() % axis.levels.size()));
  }

  double speed(const Tuning& tuning) const {
    double lost = 0, before = 0;
    for (size_t a = 0; a < axes_.size(); ++a) {
      const double away = std::abs(place(axes_[a], tuning) - best_[a]);
      lost += shape_.steepness * std::max(0.0, away - shape_.flat_levels);
      lost += shape_.interaction * std::min(away, before);
      before = away;
    }
    return 1000 * std::exp(-lost);
  }
  // Of all tunings.
  double best_speed() const { return 1000; }

  double sample(const Tuning& tuning) {
    const double scatter = shape_.noise * normal_(random_);
    const bool is_outlier = uniform_(random_) < shape_.outliers;
    return speed(tuning) * std::exp(scatter + shape_.drift * samples_++) / (is_outlier ? 2 : 1);
  }
  int samples() const { return samples_; }

 private:
  static double place(const Axis& axis, const Tuning& tuning) {
    for (size_t p = 0; p < axis.levels.size(); ++p) {
      if (axis.levels[p] == tuning.level(axis.knob)) return static_cast<double>(p);
    }
    return static_cast<double>(axis.home);
  }

  const std::vector<Axis> axes_;
  const SurfaceShape shape_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_{0, 1};
  std::uniform_real_distribution<double> uniform_{0, 1};
  std::vector<double> best_;
  int samples_ = 0;
};

}  // namespace hvd::tune::testing
