// Options that set a variable of the core: what --help says of them is what the core does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/settings.h"
#include "launch/options/option_table.h"
#include "launch/options/tunable_table.h"
#include "launch/options/tunables.h"

namespace hvd::launch {
namespace {

TEST(LaunchTunables, EveryVariableIsOneThatTheCoreReads) {
  const auto settings = describe_settings();
  for (const TunableInfo& tunable : tunable_table()) {
    const bool is_known =
        std::any_of(settings.begin(), settings.end(),
                    [&](const SettingInfo& info) { return info.name == tunable.variable; });
    EXPECT_TRUE(is_known) << tunable.variable;
  }
}

std::string_view group_of(std::string_view name) {
  for (const OptionInfo& option : option_table()) {
    if (option.names.front() == name) return option.group;
  }
  return "no such option";
}

TEST(LaunchTunables, AnOptionIsSaidToBeWithoutEffectIfItsVariableIs) {
  for (const char* name : {"--fusion-threshold-mb", "--cycle-time-ms", "--hierarchical-allgather",
                           "--no-hierarchical-allgather"}) {
    EXPECT_EQ(group_of(name), "Accepted, without effect") << name;
  }
  EXPECT_EQ(group_of("--num-nccl-streams"), "Libraries");
  EXPECT_EQ(group_of("--cache-capacity"), "Tuning");
  EXPECT_EQ(group_of("--torus-allreduce"), "Tuning");
}

TEST(LaunchTunables, AreCheckedAsTheCoreDoes) {
  const std::pair<TunableId, const char*> refused[] = {{TunableId::kNumNcclStreams, "0"},
                                                       {TunableId::kNumNcclStreams, "100"},
                                                       {TunableId::kGlooTimeout, "0"},
                                                       {TunableId::kCacheCapacity, "4294967296"}};
  for (const auto& [id, text] : refused) {
    Tunables tunables;
    EXPECT_EQ(tunables.set(id, text).code(), StatusCode::kInvalidArgument) << text;
    EXPECT_FALSE(tunables.get(id).has_value());
  }
}

TEST(LaunchTunables, EveryLevelThatTheCoreTakesIsTaken) {
  for (const char* level : {"trace", "WARNING", "warn", "off"}) {
    Tunables tunables;
    EXPECT_TRUE(tunables.set(TunableId::kLogLevel, level).is_ok()) << level;
  }
}

}  // namespace
}  // namespace hvd::launch
