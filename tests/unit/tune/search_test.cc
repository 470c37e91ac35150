// The search on surfaces whose best point is known, and beside one that models them.
#include "tune/search.h"

#include <gtest/gtest.h>

#include <iostream>
#include <numeric>

#include "tests/unit/tune/modelled_search.h"
#include "tests/unit/tune/surface.h"
#include "tune/axes.h"

namespace hvd::tune {
namespace {

using testing::Surface;
using testing::SurfaceShape;

std::vector<Axis> one_host_axes() {
  return axes_for({.ranks = 2, .small_bytes = 8192, .spin_count = 4000});
}

struct Result {
  double share;         // of the best speed, at the end
  double while_search;  // mean speed of the samples, as a share of the start's
  int samples;
};

Result run(Search& search, Surface& surface, const Tuning& start) {
  double sum = 0;
  int count = 0;
  for (; !search.is_done() && count < 5000; ++count) {
    sum += surface.speed(search.tuning());
    search.report(surface.sample(search.tuning()));
  }
  EXPECT_TRUE(search.is_done());
  return {surface.speed(search.best()) / surface.best_speed(), sum / count / surface.speed(start),
          count};
}

Result mean_of(const SurfaceShape& shape, const Tuning& start, const SearchOptions& options) {
  constexpr int kSurfaces = 40;
  Result mean{0, 0, 0};
  for (uint64_t seed = 1; seed <= kSurfaces; ++seed) {
    const auto axes = one_host_axes();
    Surface surface(axes, seed, shape);
    Search search(axes, start, options);
    const Result one = run(search, surface, start);
    mean.share += one.share / kSurfaces;
    mean.while_search += one.while_search / kSurfaces;
    mean.samples += one.samples;
  }
  mean.samples /= kSurfaces;
  std::cout << "share of the best " << mean.share << ", speed while searching " << mean.while_search
            << " of the start's, " << mean.samples << " samples\n";
  return mean;
}

struct Case {
  const char* name;
  SurfaceShape shape;
  double share;
};
class OnSurfaces : public ::testing::TestWithParam<Case> {};

TEST_P(OnSurfaces, FindsWhatIsNearTheBest) {
  const Result result = mean_of(GetParam().shape, Tuning{}, {.most_races = 40});

  EXPECT_GE(result.share, GetParam().share);
}

INSTANTIATE_TEST_SUITE_P(
    Synthetic, OnSurfaces,
    ::testing::Values(Case{"Quiet", {.noise = 0.003}, 0.95}, Case{"Noisy", {.noise = 0.05}, 0.85},
                      Case{"Drifting", {.noise = 0.02, .drift = -0.002}, 0.90},
                      Case{"WithPlateaus", {.noise = 0.02, .flat_levels = 1}, 0.95},
                      Case{"Interacting", {.noise = 0.02, .interaction = 0.05}, 0.90},
                      Case{"WithOutliers", {.noise = 0.02, .outliers = 0.05}, 0.80}),
    [](const auto& info) { return std::string(info.param.name); });

// The automatic tuning is the best: everything flat but what is tried.
class GoodDefault : public ::testing::Test {
 protected:
  static double speed(const Tuning& tuning) {
    int away = 0;
    for (const uint8_t level : tuning.levels) away += level != 0 ? 1 : 0;
    return 1000 * std::exp(-0.05 * away);
  }
};

TEST_F(GoodDefault, IsKeptAndCostsLittle) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal(0, 0.02);
  Search search(one_host_axes(), Tuning{}, {});
  double sum = 0;
  int count = 0;
  for (; !search.is_done(); ++count) {
    sum += speed(search.tuning());
    search.report(speed(search.tuning()) * std::exp(normal(random)));
  }

  EXPECT_EQ(search.best(), Tuning{});
  EXPECT_GE(sum / count / 1000, 0.95) << count;
}

TEST(Search, LeavesABadStartByTheFirstRace) {
  const Tuning bad = *parse_tuning("small_bytes=104 chunk_bytes=16384 spin_count=0 yield_count=0");
  const auto axes = one_host_axes();
  const auto speed = [&](const Tuning& t) { return t == bad ? 100.0 : 1000.0; };
  Search search(axes, bad, {.warmup_samples = 2});
  int samples = 0;
  for (; search.best() == bad && samples < 100; ++samples) search.report(speed(search.tuning()));

  EXPECT_EQ(search.best(), Tuning{});
  EXPECT_LE(samples, 8);
}

TEST(Search, GivesUpAChampionThatIsNoBetterThanTheAutomaticTuning) {
  // The scores favour whatever is new, until the search has decided on something.
  const auto axes = one_host_axes();
  Search search(axes, Tuning{}, {.warmup_samples = 0, .most_races = 1, .caution = 0});
  while (search.races() == 0) search.report(search.tuning() == Tuning{} ? 100 : 130);
  ASSERT_NE(search.best(), Tuning{});
  while (!search.is_done()) search.report(search.tuning() == Tuning{} ? 130 : 100);

  EXPECT_TRUE(search.fell_back());
  EXPECT_EQ(search.best(), Tuning{});
}

TEST(Search, ReportsTheGainWithItsConfidence) {
  const auto axes = one_host_axes();
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal(0, 0.01);
  const Tuning start = *parse_tuning("chunk_bytes=65536");
  Search search(axes, start, {});
  while (!search.is_done()) {
    const double speed = search.tuning().level(Knob::kChunkBytes) == 3 ? 120 : 100;
    search.report(speed * std::exp(normal(random)));
  }

  EXPECT_FALSE(search.fell_back());
  EXPECT_NEAR(search.gain().ratio, 1.2, 0.03);
  EXPECT_LT(search.gain().low, 1.2);
  EXPECT_GT(search.gain().high, 1.2);
  EXPECT_GT(search.gain().low, 1.1);
}

// What an interval of 95 % promises: the truth lies in 19 of 20, however the samples scatter.
TEST(Search, TheTrueGainLiesInNineteenOfTwentyIntervals) {
  constexpr int kSearches = 1500;
  const auto axes = one_host_axes();
  for (const SurfaceShape& shape :
       {SurfaceShape{.noise = 0.01}, SurfaceShape{.noise = 0.05}, SurfaceShape{.noise = 0.15},
        SurfaceShape{.noise = 0.02, .drift = -0.002},
        SurfaceShape{.noise = 0.03, .outliers = 0.05}}) {
    int searches = 0, covered = 0;
    for (uint64_t seed = 1; seed <= kSearches; ++seed) {
      Surface surface(axes, seed, shape);
      // Few races: little to learn the scatter from.
      Search search(axes, Tuning{}, {.most_races = 4});
      Tuning champion;
      while (!search.is_done()) {
        champion = search.best();
        search.report(surface.sample(search.tuning()));
      }
      const Estimate& gain = search.gain();
      if (gain.count == 0) continue;  // nothing won: no interval
      const double truth = surface.speed(champion) / surface.speed(Tuning{});
      ++searches;
      covered += gain.low <= truth && truth <= gain.high ? 1 : 0;
    }
    ASSERT_GT(searches, kSearches / 4);
    EXPECT_GE(covered, 0.95 * searches)
        << "noise " << shape.noise << ", " << searches << " intervals";
    EXPECT_LE(covered, 0.99 * searches) << "wider than it need be: noise " << shape.noise;
  }
}

TEST(Search, TriesNothingWhereNothingIsAllowed) {
  Search search(one_host_axes(), Tuning{}, {.warmup_samples = 0, .most_races = 0});

  EXPECT_TRUE(search.is_done());
  EXPECT_EQ(search.best(), Tuning{});
}

TEST(Search, NeverTurnsAKnobThatMayChangeBits) {
  for (const int hosts : {1, 2}) {
    for (const Axis& axis : axes_for({.ranks = 4, .hosts = hosts})) {
      EXPECT_FALSE(info_of(axis.knob).may_change_bits);
    }
  }
}

TEST(Search, LeavesAloneWhatTheUserHasSet) {
  for (const Axis& axis : axes_for({.ranks = 2, .spin_is_fixed = true, .yield_is_fixed = true})) {
    EXPECT_NE(axis.knob, Knob::kSpinCount);
    EXPECT_NE(axis.knob, Knob::kYieldCount);
  }
}

// With as many samples as the pairwise search took, over surfaces of both kinds.
TEST(Search, IsAsGoodAsOneThatModelsTheSurface) {
  constexpr int kSurfaces = 20;
  double ours = 0, modelled = 0;
  for (const SurfaceShape& shape :
       {SurfaceShape{.noise = 0.02}, SurfaceShape{.noise = 0.05, .flat_levels = 1}}) {
    for (uint64_t seed = 1; seed <= kSurfaces; ++seed) {
      const auto axes = one_host_axes();
      Surface surface(axes, seed, shape);
      Search search(axes, Tuning{}, {.most_races = 40});
      const Result result = run(search, surface, Tuning{});
      ours += result.share / (2 * kSurfaces);
      Surface again(axes, seed, shape);
      modelled += again.speed(testing::modelled_best(axes, again, result.samples, shape.noise)) /
                  again.best_speed() / (2 * kSurfaces);
    }
  }

  std::cout << "pairwise " << ours << ", Gaussian process " << modelled << "\n";
  EXPECT_GE(ours, modelled - 0.01);
}

}  // namespace
}  // namespace hvd::tune
