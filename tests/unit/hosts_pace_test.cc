// How the overlap of blocks is chosen from what was measured.
#include <gtest/gtest.h>

#include "collective/hosts/pace.h"

namespace hvd::testing {
namespace {

using collective::hosts::Pace;
using collective::hosts::pace_in;
using collective::hosts::PaceChooser;
using std::chrono::microseconds;

constexpr uint64_t kMiB = 1 << 20;

struct Network {
  microseconds lockstep, deep;
};

// Runs works of one size as a link would; returns how many ran deep.
int run(PaceChooser& chooser, const Network& network, int works, uint64_t bytes = 4 * kMiB) {
  const int size_class = collective::hosts::pace_class_of(bytes);
  int deep = 0;
  for (int i = 0; i < works; ++i) {
    const Pace pace = pace_in(chooser.choices(), size_class);
    deep += pace == Pace::kDeep ? 1 : 0;
    chooser.report(size_class, pace, bytes, pace == Pace::kDeep ? network.deep : network.lockstep);
  }
  return deep;
}

Pace choice(const PaceChooser& chooser, uint64_t bytes = 4 * kMiB) {
  return pace_in(chooser.choices(), collective::hosts::pace_class_of(bytes));
}

TEST(HostsPace, SmallWorksAreInLockstep) {
  EXPECT_EQ(collective::hosts::pace_class_of(kMiB - 1), -1);
  EXPECT_EQ(pace_in(0xffff, -1), Pace::kLockstep);
}

TEST(HostsPace, ClassesGrowWithTheSize) {
  EXPECT_EQ(collective::hosts::pace_class_of(kMiB), 0);
  EXPECT_EQ(collective::hosts::pace_class_of(8 * kMiB), 1);
  EXPECT_EQ(collective::hosts::pace_class_of(64 * kMiB), 2);
  EXPECT_EQ(collective::hosts::pace_class_of(uint64_t{1} << 40),
            collective::hosts::kPaceClasses - 1);
}

TEST(HostsPace, BeginsInLockstep) { EXPECT_EQ(PaceChooser().choices(), 0); }

TEST(HostsPace, FindsTheQuickerOne) {
  PaceChooser with_delay, without;
  run(with_delay, {microseconds(900), microseconds(300)}, 10);
  run(without, {microseconds(300), microseconds(900)}, 10);
  EXPECT_EQ(choice(with_delay), Pace::kDeep);
  EXPECT_EQ(choice(without), Pace::kLockstep);
}

TEST(HostsPace, EqualOnesStayInLockstep) {
  PaceChooser chooser;
  run(chooser, {microseconds(300), microseconds(295)}, 10);
  EXPECT_EQ(choice(chooser), Pace::kLockstep);
}

TEST(HostsPace, LateWorksDoNotDecide) {
  PaceChooser chooser;
  for (const int took : {9000, 300, 8000})
    chooser.report(0, Pace::kLockstep, kMiB, microseconds(took));
  for (const int took : {500, 500, 500}) chooser.report(0, Pace::kDeep, kMiB, microseconds(took));
  EXPECT_EQ(pace_in(chooser.choices(), 0), Pace::kLockstep);
}

TEST(HostsPace, TheSlowerOneIsTriedSeldom) {
  PaceChooser chooser;
  const int deep = run(chooser, {microseconds(300), microseconds(900)}, 2000);
  EXPECT_GE(deep, 10);
  EXPECT_LE(deep, 20);
}

TEST(HostsPace, ANetworkThatChangesIsNoticed) {
  PaceChooser chooser;
  run(chooser, {microseconds(300), microseconds(900)}, 507);
  run(chooser, {microseconds(3000), microseconds(1000)}, 20);
  EXPECT_EQ(choice(chooser), Pace::kDeep);
}

TEST(HostsPace, ClassesAreChosenApart) {
  PaceChooser chooser;
  run(chooser, {microseconds(300), microseconds(900)}, 10, 2 * kMiB);
  run(chooser, {microseconds(90000), microseconds(30000)}, 10, 100 * kMiB);
  EXPECT_EQ(choice(chooser, 2 * kMiB), Pace::kLockstep);
  EXPECT_EQ(choice(chooser, 100 * kMiB), Pace::kDeep);
  EXPECT_EQ(choice(chooser, 16 * kMiB), Pace::kLockstep);
}

}  // namespace
}  // namespace hvd::testing
