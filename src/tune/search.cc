#include "tune/search.h"

#include <algorithm>
#include <cmath>

namespace hvd::tune {
namespace {

constexpr int kMostPairs = 5;
// The standard error of the middle of n normal numbers, by that of their mean.
constexpr double kErrorOfMiddle[kMostPairs + 1] = {1, 1, 1, 1.160, 1.092, 1.198};
// Of n ratios the second ones from both ends have the true middle between them, unless at most one
// of them lies on one side: as when a coin falls on one side at most once. Whatever their
// distribution, this is so for 1 - 2 * (1 + 9) / 2^9 = 96 % of nine, and for 93 % of eight.
constexpr size_t kPairsOfLastRace = 9;
constexpr size_t kFromTheEnds = 1;
// Less is not worth another tuning.
constexpr double kLeastGain = 0.01;
// Until the samples have shown how much they scatter: five percent, as if seen twice.
constexpr double kPriorDeviation = 0.05;
constexpr int kPriorFreedom = 2;
// No more pairs for a challenger that is so much slower.
constexpr double kClearlyWorse = 0.10;

Tuning with(Tuning tuning, Knob knob, uint8_t level) {
  tuning.set_level(knob, level);
  return tuning;
}

}  // namespace

Search::Search(std::vector<Axis> axes, const Tuning& start, const SearchOptions& options)
    : axes_(std::move(axes)),
      options_(options),
      samples_left_(std::max(0, options.warmup_samples)),
      champion_(start) {
  tried_.insert(encode(start));
  if (samples_left_ == 0) begin_next_race();
}

const Tuning& Search::tuning() const {
  const bool races = phase_ == Phase::kRace || phase_ == Phase::kLastRace;
  return races && challenger_is_next() ? challenger_ : champion_;
}

// Pairs begin with the one that the pair before ended with.
bool Search::challenger_is_next() const {
  const bool begins_with_challenger = ratios_.size() % 2 == 0;
  return begins_with_challenger == pair_.empty();
}

void Search::report(double score) {
  if (phase_ == Phase::kDone) return;
  if (phase_ == Phase::kWarmUp) {
    if (--samples_left_ == 0) begin_next_race();
    return;
  }
  pair_.push_back(std::max(score, 1e-12));
  if (pair_.size() < 2) return;
  const bool began_with_challenger = ratios_.size() % 2 == 0;
  const double ratio = std::log(pair_[0] / pair_[1]);
  ratios_.push_back(began_with_challenger ? ratio : -ratio);
  pair_.clear();
  if (const Outcome outcome = judge(); outcome != Outcome::kOpen) finish_race(outcome);
}

// Of the middle, since a job stops now and then for something else (a checkpoint, above all).
double Search::middle() const {
  std::vector<double> sorted = ratios_;
  std::sort(sorted.begin(), sorted.end());
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

double Search::deviation_so_far() const {
  const double squares = squares_ + kPriorFreedom * kPriorDeviation * kPriorDeviation;
  return std::sqrt(squares / (freedom_ + kPriorFreedom));
}

// Of the race that runs; what is far out counts as far, not as how far.
double Search::squares_of_race() const {
  const double most = 3 * deviation_so_far(), centre = middle();
  double squares = 0;
  for (const double ratio : ratios_) {
    const double away = std::min(std::abs(ratio - centre), most);
    squares += away * away;
  }
  return squares;
}

double Search::deviation() const {
  const double squares =
      squares_ + squares_of_race() + kPriorFreedom * kPriorDeviation * kPriorDeviation;
  return std::sqrt(squares / (freedom_ + kPriorFreedom + static_cast<int>(ratios_.size()) - 1));
}

double Search::error_of_middle() const {
  const auto count = static_cast<double>(ratios_.size());
  return kErrorOfMiddle[ratios_.size()] * deviation() / std::sqrt(count);
}

Search::Outcome Search::judge() const {
  const double lead = middle();
  const size_t count = ratios_.size();
  if (phase_ == Phase::kLastRace) {
    if (count < kPairsOfLastRace) return Outcome::kOpen;
    return lead > 0 ? Outcome::kWon : Outcome::kLost;
  }
  if (count < 2) return Outcome::kOpen;
  // One of two may have been bad luck.
  const double best = *std::max_element(ratios_.begin(), ratios_.end());
  if (count == 2 && best > kLeastGain) return Outcome::kOpen;
  if (lead < -kClearlyWorse) return Outcome::kLost;
  const double error = error_of_middle();
  if (lead - 3 * options_.caution * error > 0 && lead > kLeastGain) return Outcome::kWon;
  if (lead + error < kLeastGain || count >= kMostPairs) return Outcome::kLost;
  return Outcome::kOpen;
}

// After the last race, whose challenger was the automatic tuning.
Estimate Search::gain_of_champion() const {
  std::vector<double> sorted = ratios_;
  std::sort(sorted.begin(), sorted.end());
  return {.ratio = std::exp(-middle()),
          .low = std::exp(-sorted[sorted.size() - 1 - kFromTheEnds]),
          .high = std::exp(-sorted[kFromTheEnds]),
          .count = static_cast<int>(sorted.size())};
}

void Search::begin_race(Phase phase, const Tuning& challenger) {
  phase_ = phase;
  challenger_ = challenger;
  ratios_.clear();
  pair_.clear();
}

void Search::finish_race(Outcome outcome) {
  if (phase_ == Phase::kLastRace) {
    gain_ = gain_of_champion();
    fell_back_ = outcome == Outcome::kWon;
    if (fell_back_) champion_ = challenger_;
    phase_ = Phase::kDone;
    return;
  }
  squares_ += squares_of_race();
  freedom_ += static_cast<int>(ratios_.size()) - 1;
  ++races_;
  const bool turned_a_knob = challenger_ != Tuning{};
  if (outcome == Outcome::kWon) {
    champion_ = challenger_;
    if (turned_a_knob) has_won_here_ = has_won_in_pass_ = true;
  } else if (turned_a_knob) {
    // Choices have no order: the next one may be better.
    if (info_of(axes_[axis_].knob).is_ordered()) {
      if (direction_ > 0 && !has_won_here_) {
        direction_ = -1;
      } else {
        next_axis();
      }
    }
  }
  begin_next_race();
}

void Search::next_axis() {
  ++axis_;
  direction_ = +1;
  has_won_here_ = false;
}

void Search::begin_next_race() {
  if (races_ < options_.most_races && tried_.insert(encode(Tuning{})).second)
    return begin_race(Phase::kRace, Tuning{});
  if (races_ < options_.most_races && find_challenger()) {
    tried_.insert(encode(challenger_));
    return begin_race(Phase::kRace, challenger_);
  }
  if (champion_ == Tuning{} || races_ == 0) {
    phase_ = Phase::kDone;
    return;
  }
  begin_race(Phase::kLastRace, Tuning{});
}

bool Search::find_challenger() {
  for (int pass = 0; pass < 2; ++pass) {
    for (; axis_ < axes_.size(); next_axis()) {
      if (find_along(axes_[axis_])) return true;
    }
    // Another round where this one has moved the champion: knobs depend on each other.
    if (!has_won_in_pass_) return false;
    has_won_in_pass_ = false;
    axis_ = 0;
  }
  return false;
}

size_t Search::place_of(const Axis& axis) const {
  const auto at = std::find(axis.levels.begin(), axis.levels.end(), champion_.level(axis.knob));
  return at == axis.levels.end() ? axis.home : static_cast<size_t>(at - axis.levels.begin());
}

// The next level in the direction that is looked into, or in the other one.
bool Search::find_along(const Axis& axis) {
  for (;;) {
    size_t place = place_of(axis);
    for (;;) {
      if (direction_ > 0 ? place + 1 >= axis.levels.size() : place == 0) break;
      place = direction_ > 0 ? place + 1 : place - 1;
      challenger_ = with(champion_, axis.knob, axis.levels[place]);
      if (tried_.count(encode(challenger_)) == 0) return true;
      // What lost to an earlier champion stays tried; choices have no order, so go on behind it.
      if (info_of(axis.knob).is_ordered()) break;
    }
    if (direction_ < 0 || has_won_here_) return false;
    direction_ = -1;
  }
}

}  // namespace hvd::tune
