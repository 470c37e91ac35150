// Who decides in an elastic job: rules as tables, and what must hold for any roster and any events.
#include "launch/elastic/policy.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "base/interrupt.h"
#include "base/text.h"

namespace hvd::launch {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kLeaving = elastic::kReportLeaving;

// A policy and what it has done so far.
class Job {
 public:
  explicit Job(PolicyLimits limits, const std::vector<HostSlots>& hosts) : policy(limits) {
    take(policy.on_hosts(hosts, now));
  }

  void take(const Actions& actions) {
    for (const Action& action : actions) {
      if (!action.event.empty()) said.push_back(action.reason);
      if (action.kind == ActionKind::kStart) started.push_back(action);
      if (action.kind == ActionKind::kAssign) {
        if (action.place.rank == 0) world.clear();
        world.push_back(action.worker);
        places[action.worker] = action.place;
      }
      if (action.kind == ActionKind::kRemove) removed.push_back(action.worker);
      if (action.kind == ActionKind::kKill) killed.push_back(action.worker);
      if (action.kind == ActionKind::kNews) news[action.worker] = action.changes;
      if (action.kind == ActionKind::kEnd) end = action;
    }
  }
  void ready(std::initializer_list<int32_t> workers) {
    for (int32_t worker : workers) {
      take(policy.on_message(worker, elastic::Ready{.epoch = policy.epoch()}, now));
    }
  }
  // From init, because the launcher said that their world is broken.
  void back_from_init(std::initializer_list<int32_t> workers) {
    for (int32_t worker : workers) {
      take(policy.on_message(worker, elastic::Ready{.epoch = policy.epoch(), .why = "it broke"},
                             now));
    }
  }
  void ends(int32_t worker, int code) {
    take(policy.on_end({.worker = worker,
                        .is_success = code == 0,
                        .exit_code = code,
                        .how = concat("exited with code ", code)},
                       now));
  }
  void pass(Nanoseconds span) {
    now += span;
    take(policy.on_time(now));
  }
  std::string last() const { return said.empty() ? "" : said.back(); }

  TimePoint now{};
  Policy policy;
  std::vector<Action> started;
  std::vector<int32_t> world, removed, killed;
  std::map<int32_t, elastic::Assign> places;
  std::map<int32_t, uint32_t> news;
  std::vector<std::string> said;
  std::optional<Action> end;
};

TEST(ElasticPolicy, BeginsWhenTheHostsHaveTheSlotsThatWereAskedFor) {
  Job job({.least = 1, .first = 3, .timeout = seconds(10), .may_hosts_change = true}, {{"a", 2}});
  EXPECT_EQ(
      job.last(),
      "the hosts have 2 slots, the job needs 3 to start (-np): waiting for more, at most 10 s");
  EXPECT_EQ(job.started.size(), 2U);  // they import meanwhile
  job.ready({0, 1});
  job.pass(seconds(9));
  EXPECT_TRUE(job.world.empty());
  job.take(job.policy.on_hosts({{"a", 2}, {"b", 1}}, job.now));
  job.pass(seconds(9));  // the newcomer has time of its own
  EXPECT_TRUE(job.world.empty());
  EXPECT_FALSE(job.end);
  job.ready({2});
  EXPECT_THAT(job.world, ElementsAre(0, 1, 2));
}

TEST(ElasticPolicy, DoesNotWaitForSlotsForEver) {
  Job job({.least = 1, .first = 2, .timeout = seconds(10), .may_hosts_change = true}, {});
  EXPECT_TRUE(job.started.empty());
  EXPECT_EQ(job.policy.wake_at(job.now), job.now + seconds(10));
  job.pass(seconds(10));
  ASSERT_TRUE(job.end);
  EXPECT_EQ(job.end->reason,
            "the hosts have 0 slots, the job needs 2 to start (-np); more did not come within 10 s "
            "(--elastic-timeout)");
}

TEST(ElasticPolicy, GoesOnWithFewerOnceItHadTheSlotsToStart) {
  Job job({.least = 1, .first = 2}, {{"a", 1}, {"b", 1}});
  job.ready({0});
  job.ends(1, 1);
  EXPECT_THAT(job.world, ElementsAre(0));
}

TEST(ElasticPolicy, FormsTheFirstWorldWhenAllHaveCome) {
  Job job({.least = 2}, {{"a", 2}, {"b", 1}});
  ASSERT_EQ(job.started.size(), 3u);

  job.ready({2, 0});
  EXPECT_TRUE(job.world.empty());
  job.ready({1});

  EXPECT_THAT(job.world, ElementsAre(0, 1, 2));
  EXPECT_EQ(job.places[2], (elastic::Assign{.epoch = 1,
                                            .rank = 2,
                                            .size = 3,
                                            .local_rank = 0,
                                            .local_size = 1,
                                            .cross_rank = 1,
                                            .cross_size = 2}));
}

TEST(ElasticPolicy, GoesOnWithTheSurvivorsInTheirOrderAndSaysWhy) {
  Job job({.least = 2}, {{"a", 2}, {"b", 2}});
  job.ready({0, 1, 2, 3});

  job.take(job.policy.on_end(
      {.worker = 1, .is_success = false, .exit_code = 137, .how = "was killed by signal 9"},
      job.now));
  job.ready({3, 0});
  EXPECT_EQ(job.policy.epoch(), 1u);
  job.ready({2});

  EXPECT_EQ(job.policy.epoch(), 2u);
  EXPECT_THAT(job.world, ElementsAre(0, 2, 3));
  EXPECT_THAT(job.last(), HasSubstr("rank 1 on a was killed by signal 9; 3 of at least 2 workers "
                                    "remain: new epoch 2 with 3 ranks; a gets no new workers"));
}

TEST(ElasticPolicy, RankZeroIsASurvivorAndNewcomersStandBehindThoseOfTheirHost) {
  Job job({.least = 1, .cooldown = {.range = {{1, 1}}}}, {{"a", 2}, {"b", 1}});
  job.ready({0, 1, 2});
  job.ends(0, 1);
  job.ready({1, 2});
  EXPECT_THAT(job.world, ElementsAre(1, 2));

  job.pass(seconds(1));
  ASSERT_EQ(job.started.size(), 4u);
  EXPECT_EQ(job.started.back().host, "a");
  job.ready({3});
  EXPECT_EQ(job.news[1], 2u);
  EXPECT_EQ(job.policy.epoch(), 2u) << "the others are asked, not broken off";
  job.ready({1, 2});

  EXPECT_THAT(job.world, ElementsAre(1, 3, 2));
}

TEST(ElasticPolicy, RestartsOnTheOnlyHostWithGrowingPauses) {
  Job job({.least = 1}, {{"a", 2}});
  job.ready({0, 1});
  int32_t victim = 1;
  for (int pause : {1, 2, 4}) {
    job.ends(victim, 1);
    job.ready({0});
    const size_t before = job.started.size();
    job.pass(seconds(pause) - Nanoseconds(1));
    EXPECT_EQ(job.started.size(), before) << pause;
    job.pass(Nanoseconds(1));
    ASSERT_EQ(job.started.size(), before + 1) << pause;
    victim = job.started.back().worker;
    job.ready({victim, 0});
  }
}

TEST(ElasticPolicy, AHostThatShrinksLosesItsLastSlots) {
  Job job({.least = 1, .may_hosts_change = true}, {{"a", 3}});
  job.ready({0, 1, 2});

  job.take(job.policy.on_hosts({{"a", 1}}, job.now));
  EXPECT_EQ(job.news[0], 1u);
  EXPECT_TRUE(job.removed.empty() && job.killed.empty()) << "they finish their step";
  job.ready({0, 1, 2});

  EXPECT_THAT(job.removed, ElementsAre(1, 2));
  EXPECT_THAT(job.world, ElementsAre(0));
}

TEST(ElasticPolicy, TakesNewsBackWhenAHostFlaps) {
  Job job({.least = 1, .may_hosts_change = true}, {{"a", 1}, {"b", 1}});
  job.ready({0, 1});

  job.take(job.policy.on_hosts({{"a", 1}}, job.now));
  EXPECT_EQ(job.news[0], 1u);
  job.take(job.policy.on_hosts({{"a", 1}, {"b", 1}}, job.now));

  EXPECT_EQ(job.news[0], 0u);
  EXPECT_EQ(job.policy.epoch(), 1u);
}

TEST(ElasticPolicy, APlannedLeaveIsNoFailureAndItsSlotStaysEmpty) {
  Job job({.least = 1}, {{"a", 2}});
  job.ready({0, 1});

  job.take(job.policy.on_message(1, elastic::Report{.kind = kLeaving}, job.now));
  job.ready({0});
  EXPECT_THAT(job.world, ElementsAre(0)) << "nobody waits for the process of the leaver";
  job.ends(1, 0);
  job.pass(seconds(120));

  EXPECT_FALSE(job.end);
  EXPECT_EQ(job.started.size(), 2u);
  job.ends(0, 0);
  ASSERT_TRUE(job.end);
  EXPECT_EQ(job.end->exit_code, 0);
}

TEST(ElasticPolicy, ANewcomerThatIsAskedToLeaveAtTheDoorIsNoFailureHoweverItEnds) {
  Job job({.least = 1, .may_hosts_change = true}, {{"a", 1}});
  job.ready({0});
  job.take(job.policy.on_hosts({{"a", 1}, {"b", 1}}, job.now));
  job.ready({1});

  job.take(job.policy.on_message(1, elastic::Report{.kind = kLeaving}, job.now));
  EXPECT_EQ(job.last(), "worker 1 on b left as it was asked to");
  EXPECT_EQ(job.news[0], 0U) << "nobody has come after all";
  job.ends(1, 1);

  job.take(job.policy.on_hosts({{"a", 1}, {"b", 2}}, job.now));
  EXPECT_EQ(job.started.size(), 4U) << "its host is as good as before";
}

TEST(ElasticPolicy, ASecondTrainingInOneProgramIsAnotherTraining) {
  Job job({.least = 1, .timeout = seconds(20), .ready_time = seconds(5)}, {{"a", 3}});
  const auto report = [&job](int32_t kind, int64_t number) {
    for (int32_t id : {0, 1, 2}) {
      job.take(job.policy.on_message(id, elastic::Report{.kind = kind, .number = number}, job.now));
    }
  };
  job.ready({0, 1, 2});
  report(elastic::kReportCommitted, 1);
  report(elastic::kReportDone, 0);
  report(elastic::kReportCommitted, 1);

  job.ready({0, 1});
  job.pass(seconds(5));

  EXPECT_THAT(job.killed, ElementsAre(2)) << "it is frozen, and not on its way to the end";
}

TEST(ElasticPolicy, WaitsForEnoughWorkersUntilTheTimeIsOver) {
  Job job({.least = 2, .timeout = seconds(10), .cooldown = {.range = {{60, 60}}}}, {{"a", 2}});
  job.ready({0, 1});
  job.ends(1, 3);
  job.ready({0});
  EXPECT_THAT(job.last(), HasSubstr("1 of at least 2 workers are ready: waiting for more"));

  job.pass(seconds(9));
  EXPECT_FALSE(job.end);
  job.pass(seconds(1));

  ASSERT_TRUE(job.end);
  EXPECT_EQ(job.end->exit_code, 3);
  EXPECT_THAT(job.end->reason, HasSubstr("only 1 of at least 2 workers came within 10 s"));
}

TEST(ElasticPolicy, DoesNotWaitForWhatCannotCome) {
  Job job({.least = 2}, {{"a", 1}, {"b", 1}});
  job.ready({0, 1});

  job.ends(1, 1);
  job.ready({0});

  ASSERT_TRUE(job.end);
  EXPECT_THAT(job.end->reason, HasSubstr("no host can take another"));
}

TEST(ElasticPolicy, ObeysTheResetLimit) {
  Job job({.least = 1, .resets = 1}, {{"a", 3}});
  job.ready({0, 1, 2});
  job.ends(2, 1);
  job.ready({0, 1});
  EXPECT_EQ(job.policy.resets(), 1);

  job.ends(1, 1);
  job.ready({0});

  ASSERT_TRUE(job.end);
  EXPECT_THAT(job.end->reason,
              HasSubstr("the number of resets during elastic job exceeded limit: 1"));
}

TEST(ElasticPolicy, WithWholeHostsAFailedWorkerTakesItsHostWithIt) {
  Job job({.least = 1, .whole_hosts = true}, {{"a", 2}, {"b", 2}});
  job.ready({0, 1, 2, 3});

  job.ends(0, 1);
  EXPECT_THAT(job.killed, ElementsAre(1));
  job.ends(1, 137);
  job.ready({2, 3});

  EXPECT_THAT(job.world, ElementsAre(2, 3));
  EXPECT_EQ(job.started.size(), 4u);
}

TEST(ElasticPolicy, WithWholeHostsAJobEndsWhenAWorkerOfEachHasFailed) {
  Job job({.least = 1, .may_hosts_change = true, .whole_hosts = true}, {{"a", 2}, {"b", 2}});
  job.ready({0, 1, 2, 3});

  job.ends(0, 3);
  job.ends(2, 3);
  EXPECT_THAT(job.killed, ElementsAre(1, 3));
  job.ends(1, 137);
  job.ends(3, 137);

  ASSERT_TRUE(job.end);
  EXPECT_EQ(job.end->exit_code, 3) << "not that of those who were killed with them";
}

TEST(ElasticPolicy, WithWholeHostsAJobOnOneHostEndsWhenAWorkerFails) {
  Job job({.least = 1, .whole_hosts = true}, {{"a", 2}});
  job.ready({0, 1});

  job.ends(1, 1);
  job.ends(0, 137);

  ASSERT_TRUE(job.end);
  EXPECT_EQ(job.started.size(), 2u);
}

TEST(ElasticPolicy, WithWholeHostsTheRunningOnesPauseForThoseThatAreStarted) {
  Job job({.least = 1, .may_hosts_change = true, .whole_hosts = true}, {{"a", 1}});
  job.ready({0});

  job.take(job.policy.on_hosts({{"a", 1}, {"b", 1}}, job.now));
  EXPECT_EQ(job.news[0], 2u) << "told before the newcomer is ready";
  job.ready({0});
  EXPECT_EQ(job.policy.epoch(), 1u);
  job.ready({1});

  EXPECT_THAT(job.world, ElementsAre(0, 1));
}

TEST(ElasticPolicy, WithWholeHostsAStartThatTakesTooLongIsNotWaitedForAgain) {
  Job job({.least = 1, .ready_time = seconds(5), .may_hosts_change = true, .whole_hosts = true},
          {{"a", 1}});
  job.ready({0});
  job.take(job.policy.on_hosts({{"a", 1}, {"b", 1}}, job.now));
  job.ready({0});

  EXPECT_EQ(job.policy.wake_at(job.now), job.now + seconds(5));
  job.pass(seconds(5));
  EXPECT_EQ(job.policy.epoch(), 2u);
  job.news.clear();
  job.pass(seconds(5));
  EXPECT_TRUE(job.news.empty());
  job.ready({1});

  EXPECT_EQ(job.news[0], 2u);
}

TEST(ElasticPolicy, WithWholeHostsTheTimeOutIsForSlotsAlone) {
  Job job({.least = 4,
           .first = 4,
           .timeout = seconds(1),
           .may_hosts_change = true,
           .whole_hosts = true},
          {{"a", 2}, {"b", 2}});
  job.pass(seconds(30));
  EXPECT_FALSE(job.end) << "they import";
  job.ready({0, 1, 2, 3});
  job.ends(0, 1);
  job.ends(1, 137);
  job.ready({2, 3});

  EXPECT_FALSE(job.end);
  job.pass(seconds(1));
  ASSERT_TRUE(job.end);
  EXPECT_THAT(job.end->reason, HasSubstr("only 2 of at least 4 workers came within 1 s"));
}

TEST(ElasticPolicy, KillsWhoeverDoesNotComeBack) {
  Job job({.least = 1, .ready_time = seconds(5)}, {{"a", 3}});
  job.ready({0, 1, 2});
  job.ready({0, 1});

  job.pass(seconds(4));
  EXPECT_TRUE(job.killed.empty());
  job.pass(seconds(1));
  EXPECT_THAT(job.killed, ElementsAre(2));
  EXPECT_THAT(job.last(), HasSubstr("rank 2 on a kept others waiting for 5 s"));
  job.ends(2, 137);

  EXPECT_THAT(job.world, ElementsAre(0, 1));
}

TEST(ElasticPolicy, KillsNobodyForWhomNobodyWaits) {
  Job job({.least = 1, .timeout = seconds(600), .ready_time = seconds(60)}, {{"a", 1}, {"b", 1}});
  job.ready({0, 1});
  job.ends(1, 1);

  EXPECT_EQ(job.policy.wake_at(job.now), job.now + seconds(600));
  job.pass(seconds(599));  // a long evaluation
  EXPECT_TRUE(job.killed.empty());
  job.ready({0});

  EXPECT_THAT(job.world, ElementsAre(0));
  EXPECT_FALSE(job.end);
}

TEST(ElasticPolicy, WhoeverIsLateHasItsTimeFromTheFirstThatWaits) {
  Job job({.least = 1, .timeout = seconds(600), .ready_time = seconds(60)}, {{"a", 4}, {"b", 1}});
  job.ready({0, 1, 2, 3, 4});
  for (int32_t id : {0, 1, 2, 3, 4}) {
    job.take(job.policy.on_message(
        id, elastic::Report{.kind = elastic::kReportCommitted, .number = 1}, job.now));
  }
  job.ends(4, 1);
  job.pass(seconds(100));
  EXPECT_TRUE(job.killed.empty());

  job.ready({0});
  EXPECT_EQ(job.policy.wake_at(job.now), job.now + seconds(60));
  job.pass(seconds(30));
  job.ends(0, 1);  // now nobody waits
  job.pass(seconds(60));
  EXPECT_TRUE(job.killed.empty());
  job.ready({1});
  job.pass(seconds(59));
  job.ready({2});
  EXPECT_TRUE(job.killed.empty());
  job.pass(seconds(1));

  EXPECT_THAT(job.killed, ElementsAre(3));
}

TEST(ElasticPolicy, ANewcomerWithoutTheStateHurriesNobodyWhoHasIt) {
  Job job({.least = 1, .timeout = seconds(600), .ready_time = seconds(60)}, {{"a", 1}, {"b", 1}});
  job.ready({0, 1});
  job.take(job.policy.on_message(0, elastic::Report{.kind = elastic::kReportCommitted, .number = 1},
                                 job.now));
  job.back_from_init({1});  // before it received anything

  job.pass(seconds(120));
  EXPECT_TRUE(job.killed.empty());
  job.ready({0});

  EXPECT_THAT(job.world, ElementsAre(0, 1));
}

TEST(ElasticPolicy, KillsAFrozenWorkerThatKeepsOthersFromTheEndButNobodyWhoseTrainingIsOver) {
  for (const bool is_done : {false, true}) {
    Job job({.least = 1, .timeout = seconds(20), .ready_time = seconds(5)}, {{"a", 3}});
    job.ready({0, 1, 2});
    if (is_done)
      job.take(job.policy.on_message(0, elastic::Report{.kind = elastic::kReportDone}, job.now));
    job.ends(2, 0);
    job.ready({1});

    job.pass(seconds(19));
    EXPECT_TRUE(job.killed.empty()) << "it may have much to do at the end";
    EXPECT_EQ(job.policy.wake_at(job.now), job.now + seconds(1));
    job.pass(seconds(1));

    EXPECT_EQ(job.killed.size(), is_done ? 0u : 1u);
  }
}

TEST(ElasticPolicy, EndsWellWhenAnybodyFinishedAndAllAreAccountedFor) {
  Job job({.least = 1}, {{"a", 3}});
  job.ready({0, 1, 2});

  job.ends(0, 0);
  EXPECT_FALSE(job.end);
  job.ready({1});  // its peer has shut down
  job.ends(2, 1);
  EXPECT_THAT(job.removed, ElementsAre(1));
  job.ends(1, 0);

  ASSERT_TRUE(job.end);
  EXPECT_EQ(job.end->exit_code, 0);
}

TEST(ElasticPolicy, EndsWhenNobodyHasTheState) {
  Job job({.least = 1}, {{"a", 2}});
  job.ready({0, 1});

  job.ends(0, 9);
  job.ends(1, 1);

  ASSERT_TRUE(job.end);
  EXPECT_THAT(job.end->reason, HasSubstr("no worker that has the state of the training is left"));
}

TEST(ElasticPolicy, AProgramThatCannotBeginIsNotStartedAgainAndAgain) {
  Job job({.least = 1}, {{"a", 2}});

  job.ends(0, 1);
  job.ends(1, 1);

  ASSERT_TRUE(job.end);
  EXPECT_EQ(job.started.size(), 2u);
  EXPECT_THAT(job.end->reason, HasSubstr("no worker came as far as init"));
}

TEST(ElasticPolicy, AProgramThatCannotBeginAnywhereEndsTheJobThoughHostsMayCome) {
  Job job({.least = 1, .first = 2, .may_hosts_change = true}, {{"a", 1}, {"b", 1}});

  job.ends(0, 3);
  EXPECT_FALSE(job.end);
  job.ends(1, 3);

  ASSERT_TRUE(job.end);
  EXPECT_EQ(job.end->exit_code, 3);
  EXPECT_THAT(job.end->reason, HasSubstr("no worker came as far as init"));
}

TEST(ElasticPolicy, AHostThatIsLostBeforeInitMayBeReplaced) {
  Job job({.least = 1, .first = 1, .may_hosts_change = true}, {{"a", 1}});

  job.take(job.policy.on_hosts({}, job.now));
  job.ends(0, 1);
  EXPECT_FALSE(job.end);
  job.take(job.policy.on_hosts({{"b", 1}}, job.now));

  EXPECT_EQ(job.started.back().host, "b");
}

TEST(ElasticPolicy, AHostThatDoesNotAnswerYetIsTriedAgainForAWhile) {
  Job job({.least = 1, .reach_time = seconds(10), .may_hosts_change = true}, {{"a", 1}});
  job.ready({0});
  job.take(job.policy.on_hosts({{"a", 1}, {"pod", 1}}, job.now));
  const auto refuse = [&job](int32_t worker) {
    job.take(job.policy.on_end({.worker = worker,
                                .exit_code = 1,
                                .how = "was lost: ssh could not connect",
                                .was_reached = false},
                               job.now));
  };
  refuse(1);
  job.pass(seconds(1));
  refuse(2);
  job.pass(seconds(2));
  ASSERT_EQ(job.started.size(), 4U);
  job.ready({3});  // its sshd listens now
  EXPECT_EQ(job.news[0], 2U);

  job.take(job.policy.on_hosts({{"a", 1}, {"pod", 1}, {"never", 1}}, job.now));
  for (int32_t worker = 4; worker < 8; ++worker) {
    ASSERT_EQ(job.started.size(), static_cast<size_t>(worker) + 1);
    EXPECT_EQ(job.started.back().host, "never");
    refuse(worker);
    job.pass(seconds(1 << (worker - 4)));  // 0, 1, 3 and 7 seconds after the first
  }
  refuse(8);
  job.pass(seconds(3600));
  EXPECT_EQ(job.started.size(), 9U) << "its time is over";
}

TEST(ElasticPolicy, AHostOfAListThatCannotChangeIsTriedOnce) {
  Job job({.least = 1}, {{"a", 1}, {"typo", 1}});
  job.ready({0});
  job.take(job.policy.on_end({.worker = 1, .exit_code = 1, .how = "was lost", .was_reached = false},
                             job.now));

  job.pass(seconds(3600));

  EXPECT_EQ(job.started.size(), 2U);
}

TEST(ElasticPolicy, SaysSoWhenAllWereAskedToLeave) {
  Job job({.least = 1, .may_hosts_change = true}, {{"a", 2}});
  job.ready({0, 1});

  for (int32_t id : {0, 1}) {
    job.take(job.policy.on_message(id, elastic::Report{.kind = kLeaving}, job.now));
  }

  ASSERT_TRUE(job.end);
  EXPECT_EQ(job.end->reason,
            "all workers that had the state of the training were asked to leave: rank 0 on a left "
            "as it was asked to; rank 1 on a left as it was asked to");
}

TEST(ElasticPolicy, NeverStartsMoreThanTheMost) {
  Job job({.least = 1, .most = 2, .may_hosts_change = true}, {{"a", 4}});
  EXPECT_EQ(job.started.size(), 2u);
  job.ready({0, 1});

  job.take(job.policy.on_hosts({{"a", 4}, {"b", 4}}, job.now));

  EXPECT_EQ(job.started.size(), 2u);
}

// ---- hosts that live and cannot be reached

struct BlameCase {
  const char* name;
  std::vector<Unreached> complaints;
  std::optional<std::string> blamed;
};

TEST(ElasticPolicy, BlamesTheHostThatIsCutOff) {
  const Standing hosts[] = {{"a", 0, true}, {"b", 1, true}, {"c", 2, false}, {"d", 3, true}};
  const BlameCase cases[] = {
      {"nobody complains", {}, std::nullopt},
      {"inside a host", {{"a", "a"}}, std::nullopt},
      {"one is not reached by others", {{"a", "b"}, {"c", "b"}}, "b"},
      {"one reaches nobody", {{"a", "b"}, {"a", "c"}}, "a"},
      {"one does not reach the launcher", {{"b", ""}}, "b"},
      {"that counts as one more", {{"a", "b"}, {"b", ""}}, "b"},
      {"among equals the one without state", {{"c", "d"}}, "c"},
      {"then the one with the higher ranks", {{"b", "d"}}, "d"},
      {"a complaint counts once", {{"a", "b"}, {"a", "b"}, {"d", "a"}}, "a"},
  };
  for (const BlameCase& one : cases) {
    EXPECT_EQ(host_to_blame(one.complaints, hosts), one.blamed) << one.name;
  }
}

TEST(ElasticPolicy, GivesUpAHostThatLivesAndCannotBeReached) {
  Job job({.least = 2}, {{"a", 1}, {"b", 1}, {"c", 2}});
  job.ready({0, 1, 2, 3});

  job.take(job.policy.on_message(
      0, elastic::Ready{.epoch = 1, .why = "rank 2 did not come", .missed = {2, 3}}, job.now));
  job.back_from_init({1, 2, 3});

  EXPECT_THAT(job.removed, ElementsAre(2, 3));
  EXPECT_THAT(job.world, ElementsAre(0, 1));
  EXPECT_THAT(job.last(), HasSubstr("the network of host c does not carry the training: rank 0 on "
                                    "a did not reach rank 2 on c; 2 of at least 2 workers remain"));
  EXPECT_THAT(job.last(), HasSubstr("c gets no new workers any more"));
  job.ends(2, 0);
  job.ends(3, 0);
  job.pass(seconds(600));
  EXPECT_EQ(job.started.size(), 4u);
  EXPECT_FALSE(job.end);
}

TEST(ElasticPolicy, EndsWithTheReasonWhenTooFewCanReachEachOther) {
  Job job({.least = 2}, {{"a", 1}, {"b", 1}});
  job.ready({0, 1});

  job.take(job.policy.on_message(
      1, elastic::Ready{.epoch = 1, .why = "no store", .missed = {kStorePeer}}, job.now));
  job.back_from_init({0});

  ASSERT_TRUE(job.end);
  EXPECT_NE(job.end->exit_code, 0);
  EXPECT_THAT(job.end->reason, HasSubstr("only 1 of at least 2 workers remain"));
  EXPECT_THAT(job.end->reason, HasSubstr("the network of host b does not carry the training: rank "
                                         "1 on b did not reach the launcher"));
}

TEST(ElasticPolicy, AHostThatComesBackCutOffDoesNotKeepAJobFromItsEnd) {
  Job job({.least = 2, .timeout = seconds(600), .cooldown = {.range = {{30, 60}}}},
          {{"a", 1}, {"b", 1}});
  job.ready({0, 1});
  int32_t other = 1;
  for (int round = 0; round < 20 && !job.end; ++round) {
    job.take(job.policy.on_message(
        0, elastic::Ready{.epoch = job.policy.epoch(), .why = "rank 1 did not come", .missed = {1}},
        job.now));
    job.back_from_init({other});
    job.ends(other, 0);
    job.pass(seconds(121));
    if (job.end) break;
    other = job.started.back().worker;
    job.ready({other});
  }

  ASSERT_TRUE(job.end) << "each world that never met began the wait for workers anew";
  EXPECT_LE(job.now - TimePoint{}, seconds(750));
  EXPECT_THAT(job.end->reason, HasSubstr("only 1 of at least 2 workers"));
  EXPECT_THAT(job.end->reason, HasSubstr("the network of host b does not carry the training"));
}

TEST(ElasticPolicy, OneThatDiedExplainsWhyItWasNotReached) {
  Job job({.least = 1, .cooldown = {.range = {{60, 60}}}}, {{"a", 1}, {"b", 2}});
  job.ready({0, 1, 2});

  job.take(job.policy.on_message(
      0, elastic::Ready{.epoch = 1, .why = "rank 2 did not come", .missed = {2}}, job.now));
  job.back_from_init({1});
  job.ends(2, 1);

  EXPECT_TRUE(job.removed.empty());
  EXPECT_THAT(job.world, ElementsAre(0, 1));
}

// ---- who has the state

TEST(ElasticPolicy, ANewcomerThatNeverGotTheStateIsNoSurvivor) {
  Job job({.least = 1, .may_hosts_change = true}, {{"a", 1}});
  job.ready({0});
  job.take(job.policy.on_message(0, elastic::Report{.kind = elastic::kReportCommitted, .number = 1},
                                 job.now));
  job.take(job.policy.on_hosts({{"a", 2}}, job.now));
  job.ready({1, 0});
  EXPECT_THAT(job.world, ElementsAre(0, 1));

  job.ends(0, 137);
  job.ready({1});

  ASSERT_TRUE(job.end) << "it would begin anew, and nobody would notice";
  EXPECT_THAT(job.end->reason, HasSubstr("no worker that has the state of the training is left"));
}

TEST(ElasticPolicy, RankZeroHasTheStateEvenAfterAWorldThatNeverMet) {
  Job job({.least = 1, .may_hosts_change = true}, {{"a", 1}, {"b", 1}});
  job.ready({0, 1});
  for (int32_t worker : {0, 1}) {
    job.take(job.policy.on_message(
        worker, elastic::Report{.kind = elastic::kReportCommitted, .number = 1}, job.now));
  }
  job.take(job.policy.on_hosts({{"a", 2}, {"b", 1}}, job.now));
  job.ready({2, 0, 1});
  EXPECT_THAT(job.world, ElementsAre(0, 2, 1));

  job.ends(0, 137);
  job.back_from_init({2, 1});

  EXPECT_THAT(job.world, ElementsAre(1, 2));
}

// ---- random rosters and events

struct Bot {
  enum class Phase { kStarting, kWaiting, kRunning, kGone } phase = Phase::kStarting;
  std::string host;
  int32_t slot = 0;
  bool had_part = false;
  bool is_leaving = false;
};

// Plays the workers: does at random what real ones may do, and checks every answer.
class Game {
 public:
  Game(uint64_t seed, const PolicyLimits& limits)
      : random_(seed), limits_(limits), policy_(limits) {
    hosts_ = {{"a", 3}, {"b", 2}};
    take(policy_.on_hosts(hosts_, now_));
  }

  void play() {
    for (int turn = 0; turn < 300 && !ended_; ++turn) {
      step();
      if (::testing::Test::HasFatalFailure()) return;
    }
  }

 private:
  int below(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

  void step() {
    now_ += std::chrono::milliseconds(below(1500));
    const int what = below(10);
    if (what == 0) {
      hosts_ = {{"a", below(4)}, {"b", below(4)}, {"c", below(3)}};
      std::erase_if(hosts_, [](const HostSlots& host) { return host.slots == 0; });
      if (hosts_.empty()) hosts_ = {{"a", 1}};
      take(policy_.on_hosts(hosts_, now_));
    } else if (what == 1) {
      take(policy_.on_time(now_));
    } else if (!bots_.empty()) {
      move(below(static_cast<int>(bots_.size())));
    }
  }

  void move(int32_t id) {
    Bot& bot = bots_[static_cast<size_t>(id)];
    if (bot.phase == Bot::Phase::kGone) return;
    const int what = below(12);
    if (bot.is_leaving) {
      bot.phase = Bot::Phase::kGone;
      take(policy_.on_end({.worker = id, .is_success = true, .how = "exited with code 0"}, now_));
    } else if (what == 0) {
      bot.phase = Bot::Phase::kGone;
      take(policy_.on_end({.worker = id, .exit_code = 137, .how = "was killed"}, now_));
    } else if (what == 1 && bot.phase == Bot::Phase::kRunning) {
      bot.is_leaving = true;
      bot.phase = Bot::Phase::kWaiting;
      take(policy_.on_message(id, elastic::Report{.kind = kLeaving}, now_));
    } else if (bot.phase != Bot::Phase::kWaiting) {
      bot.phase = Bot::Phase::kWaiting;
      take(policy_.on_message(id, elastic::Ready{.epoch = policy_.epoch()}, now_));
    }
  }

  void take(const Actions& actions) {
    std::vector<const Action*> assigned;
    for (const Action& action : actions) {
      ASSERT_FALSE(ended_) << "nothing follows the end";
      ASSERT_TRUE(action.kind == ActionKind::kNews || !action.reason.empty());
      if (action.kind == ActionKind::kStart) check_start(action);
      if (action.kind == ActionKind::kAssign) assigned.push_back(&action);
      if (action.kind == ActionKind::kRemove || action.kind == ActionKind::kKill) {
        bots_[static_cast<size_t>(action.worker)].phase = Bot::Phase::kGone;
        gone_.push_back(action.worker);
      }
      if (action.kind == ActionKind::kEnd) ended_ = true;
    }
    if (!assigned.empty()) check_world(assigned);
    while (!gone_.empty() && !ended_) {
      const int32_t worker = gone_.back();
      gone_.pop_back();
      take(policy_.on_end({.worker = worker, .is_success = true, .how = "exited with code 0"},
                          now_));
    }
  }

  void check_start(const Action& action) {
    ASSERT_EQ(action.worker, static_cast<int32_t>(bots_.size()));
    int alive = 0;
    for (const Bot& bot : bots_) {
      if (bot.phase == Bot::Phase::kGone) continue;
      ++alive;
      ASSERT_FALSE(bot.host == action.host && bot.slot == action.slot) << "the slot is taken";
    }
    const auto host = std::find_if(hosts_.begin(), hosts_.end(),
                                   [&](const HostSlots& one) { return one.host == action.host; });
    ASSERT_TRUE(host != hosts_.end() && action.slot < host->slots);
    bots_.push_back({.phase = Bot::Phase::kStarting, .host = action.host, .slot = action.slot});
  }

  void check_world(const std::vector<const Action*>& assigned) {
    const auto size = static_cast<int32_t>(assigned.size());
    ASSERT_GE(size, limits_.least);
    ASSERT_LE(size, limits_.most);
    std::map<std::string, int32_t> last;  // by host: rank before, of the last survivor
    for (int32_t rank = 0; rank < size; ++rank) {
      const Action& action = *assigned[static_cast<size_t>(rank)];
      const Bot& bot = bots_[static_cast<size_t>(action.worker)];
      ASSERT_EQ(action.place.rank, rank);
      ASSERT_EQ(action.place.size, size);
      ASSERT_EQ(action.place.epoch, policy_.epoch());
      ASSERT_EQ(bot.phase, Bot::Phase::kWaiting) << "only those at the door are taken in";
      ASSERT_FALSE(bot.is_leaving);
      const auto before = ranks_.find(action.worker);
      if (rank == 0) {
        ASSERT_TRUE(epoch_ == 0 || before != ranks_.end()) << "rank 0 has no state";
      }
      if (before == ranks_.end()) continue;
      const auto [known, is_first] = last.try_emplace(bot.host, before->second);
      ASSERT_TRUE(is_first || known->second < before->second) << "survivors changed places";
      known->second = before->second;
    }
    ASSERT_GT(policy_.epoch(), epoch_);
    epoch_ = policy_.epoch();
    for (const Bot& bot : bots_) ASSERT_NE(bot.phase, Bot::Phase::kRunning);
    ranks_.clear();
    for (const Action* action : assigned) {
      Bot& bot = bots_[static_cast<size_t>(action->worker)];
      bot.phase = Bot::Phase::kRunning;
      bot.had_part = true;
      ranks_[action->worker] = action->place.rank;
    }
  }

  std::mt19937_64 random_;
  PolicyLimits limits_;
  Policy policy_;
  TimePoint now_{};
  std::vector<HostSlots> hosts_;
  std::vector<Bot> bots_;
  std::map<int32_t, int32_t> ranks_;
  std::vector<int32_t> gone_;
  uint64_t epoch_ = 0;
  bool ended_ = false;
};

TEST(ElasticPolicy, KeepsItsRulesWhateverHappens) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    const auto least = static_cast<int32_t>(1 + seed % 3);
    Game game(seed, {.least = least,
                     .most = least + static_cast<int32_t>(seed % 4),
                     .timeout = seconds(20),
                     .ready_time = seconds(3),
                     .cooldown = {.range = {{1, 4}}},
                     .may_hosts_change = true,
                     .whole_hosts = seed % 5 == 0,
                     .seed = seed});
    game.play();
    ASSERT_FALSE(HasFailure());
  }
}

}  // namespace
}  // namespace hvd::launch
