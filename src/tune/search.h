// search.h - finds a good tuning from the scores of samples. Pure: it says which tuning the next
// sample runs under, and is told how that went; clocks, files and ranks are its caller's.
//
// Words: a score is a speed, more is better. A race compares a challenger with the champion in
// pairs of samples, one under each, in changing order, so that a machine that becomes slower all
// the time favours neither. Challengers differ from the champion in one knob by one level, further
// in a direction that helped; the first one is the automatic tuning, if the search did not start
// there. Most challengers lose clearly, and their races end after two pairs. The search ends when
// no neighbour of the champion is better, or after so many races as it was allowed; a last race
// with the automatic tuning tells what was gained, and the champion is dropped if it was nothing.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "tune/tuning.h"

namespace hvd::tune {

// A knob that the search may turn.
struct Axis {
  Knob knob = Knob::kSmallBytes;
  std::vector<uint8_t> levels;  // those worth trying, in order
  size_t home = 0;              // place of the level that "automatic" comes closest to
};

struct SearchOptions {
  int warmup_samples = 3;  // at the beginning, thrown away
  int most_races = 20;
  double caution = 0.8;  // 0 to 1: a winner leads by three times so many standard errors
};

// How many times as quick one tuning is as another: the middle of the ratios of n pairs, and
// between which values it lies, with a confidence of 95 % or more.
struct Estimate {
  double ratio = 1;
  double low = 1, high = 1;
  int count = 0;
};

class Search {
 public:
  Search(std::vector<Axis> axes, const Tuning& start, const SearchOptions& options);

  // Of the next sample; of all that follow when it is done.
  const Tuning& tuning() const;
  void report(double score);

  bool is_done() const { return phase_ == Phase::kDone; }
  bool is_warming_up() const { return phase_ == Phase::kWarmUp; }
  const Tuning& best() const { return champion_; }
  int races() const { return races_; }
  // When it is done: the best tuning against the automatic one. No pairs: they are the same.
  const Estimate& gain() const { return gain_; }
  // A champion was no better than the automatic tuning, and given up.
  bool fell_back() const { return fell_back_; }

 private:
  enum class Phase { kWarmUp, kRace, kLastRace, kDone };
  enum class Outcome { kOpen, kWon, kLost };

  void begin_next_race();
  bool find_challenger();
  bool find_along(const Axis& axis);
  size_t place_of(const Axis& axis) const;
  void next_axis();
  void begin_race(Phase phase, const Tuning& challenger);
  void finish_race(Outcome outcome);
  Outcome judge() const;
  Estimate gain_of_champion() const;
  double middle() const;
  double error_of_middle() const;
  double deviation_so_far() const;
  double squares_of_race() const;
  double deviation() const;
  bool challenger_is_next() const;

  const std::vector<Axis> axes_;
  const SearchOptions options_;
  Phase phase_ = Phase::kWarmUp;
  int samples_left_;  // of the warm-up
  Tuning champion_, challenger_;
  std::set<uint32_t> tried_;  // codes
  int races_ = 0;

  // Where the next challenger is looked for.
  size_t axis_ = 0;
  int direction_ = +1;
  bool has_won_here_ = false;
  bool has_won_in_pass_ = false;

  // The race that runs.
  std::vector<double> ratios_;  // logarithms, challenger by champion
  std::vector<double> pair_;    // scores of the pair that runs
  // Squares of deviations within all races, and how many of them count.
  double squares_ = 0;
  int freedom_ = 0;

  Estimate gain_;
  bool fell_back_ = false;
};

}  // namespace hvd::tune
