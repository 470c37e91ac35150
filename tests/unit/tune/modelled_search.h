// modelled_search.h - the alternative to tune::Search, for comparison: a Gaussian process over the
// levels, and the point of the largest expected improvement next. As the original searched.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/unit/tune/surface.h"

namespace hvd::tune::testing {

class GaussianProcess {
 public:
  GaussianProcess(double length, double noise) : length_(length), noise_(noise) {}

  // Rows of L in L L' = K; n is at most some dozens.
  void fit(const std::vector<std::vector<double>>& points, const std::vector<double>& values) {
    points_ = points;
    const size_t n = points.size();
    lower_.assign(n, std::vector<double>(n, 0));
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j <= i; ++j) {
        double sum = kernel(points[i], points[j]) + (i == j ? noise_ : 0);
        for (size_t k = 0; k < j; ++k) sum -= lower_[i][k] * lower_[j][k];
        lower_[i][j] = i == j ? std::sqrt(std::max(sum, 1e-12)) : sum / lower_[j][j];
      }
    }
    weights_ = solve_upper(solve_lower(values));
  }

  double improvement(const std::vector<double>& point, double best) const {
    std::vector<double> k;
    for (const auto& other : points_) k.push_back(kernel(point, other));
    double mean = 0, variance = 1;
    for (size_t i = 0; i < k.size(); ++i) mean += k[i] * weights_[i];
    for (const double v : solve_lower(k)) variance -= v * v;
    const double deviation = std::sqrt(std::max(variance, 1e-12));
    const double z = (mean - best) / deviation;
    return (mean - best) * 0.5 * std::erfc(-z / std::sqrt(2)) +
           deviation * std::exp(-z * z / 2) / std::sqrt(2 * M_PI);
  }
  double mean(const std::vector<double>& point) const {
    double sum = 0;
    for (size_t i = 0; i < points_.size(); ++i) sum += kernel(point, points_[i]) * weights_[i];
    return sum;
  }

 private:
  double kernel(const std::vector<double>& a, const std::vector<double>& b) const {
    double squares = 0;
    for (size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
    return std::exp(-squares / (2 * length_ * length_));
  }
  std::vector<double> solve_lower(const std::vector<double>& right) const {
    std::vector<double> x(right.size());
    for (size_t i = 0; i < x.size(); ++i) {
      double sum = right[i];
      for (size_t k = 0; k < i; ++k) sum -= lower_[i][k] * x[k];
      x[i] = sum / lower_[i][i];
    }
    return x;
  }
  std::vector<double> solve_upper(const std::vector<double>& right) const {
    std::vector<double> x(right.size());
    for (size_t i = x.size(); i-- > 0;) {
      double sum = right[i];
      for (size_t k = i + 1; k < x.size(); ++k) sum -= lower_[k][i] * x[k];
      x[i] = sum / lower_[i][i];
    }
    return x;
  }

  const double length_, noise_;
  std::vector<std::vector<double>> points_, lower_;
  std::vector<double> weights_;
};

// Each point is the mean of five samples, as in the original.
inline Tuning modelled_best(const std::vector<Axis>& axes, Surface& surface, int samples,
                            double noise) {
  constexpr int kPerPoint = 5;
  std::mt19937_64 random(11);
  const auto random_tuning = [&] {
    Tuning tuning;
    for (const Axis& axis : axes)
      tuning.set_level(axis.knob, axis.levels[random() % axis.levels.size()]);
    return tuning;
  };
  const auto point_of = [&](const Tuning& tuning) {
    std::vector<double> point;
    for (const Axis& axis : axes) {
      const auto at = std::find(axis.levels.begin(), axis.levels.end(), tuning.level(axis.knob));
      const size_t place =
          at == axis.levels.end() ? axis.home : static_cast<size_t>(at - axis.levels.begin());
      point.push_back(static_cast<double>(place) / static_cast<double>(axis.levels.size()));
    }
    return point;
  };
  std::vector<Tuning> tried;
  std::vector<std::vector<double>> points;
  std::vector<double> scores;
  GaussianProcess model(0.7, noise * noise / kPerPoint * 25 + 1e-4);
  const auto centred = [&] {
    const double mean =
        std::accumulate(scores.begin(), scores.end(), 0.0) / static_cast<double>(scores.size());
    std::vector<double> values;
    for (const double score : scores) values.push_back((score - mean) * 2);
    return values;
  };
  for (int used = 0; used + kPerPoint <= samples; used += kPerPoint) {
    Tuning next;
    if (scores.size() >= 4) {
      const std::vector<double> values = centred();
      model.fit(points, values);
      const double best = *std::max_element(values.begin(), values.end());
      double most = -1;
      for (int i = 0; i < 300; ++i) {
        const Tuning candidate = random_tuning();
        const double gain = model.improvement(point_of(candidate), best);
        if (gain > most) {
          most = gain;
          next = candidate;
        }
      }
    } else if (!scores.empty()) {
      next = random_tuning();
    }
    double sum = 0;
    for (int i = 0; i < kPerPoint; ++i) sum += std::log(surface.sample(next));
    tried.push_back(next);
    points.push_back(point_of(next));
    scores.push_back(sum / kPerPoint);
  }
  const auto best = std::max_element(scores.begin(), scores.end());
  return tried[static_cast<size_t>(best - scores.begin())];
}

}  // namespace hvd::tune::testing
