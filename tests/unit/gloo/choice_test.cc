// When Gloo carries the data, and where its plug-in is looked for.
#include "gloo/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fake_environment.h"
#include "gloo/library.h"

namespace hvd::gloo {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

bool wants(const char* controller, const char* operations) {
  return is_wanted(fake_environment(
      {{"HOROVOD_CONTROLLER", controller}, {"HOROVOD_CPU_OPERATIONS", operations}}));
}

TEST(GlooChoice, IsAskedForByEitherVariableAndTheOneForDataCounts) {
  EXPECT_FALSE(wants("", ""));
  EXPECT_TRUE(wants("", "gloo"));
  EXPECT_TRUE(wants("gloo", ""));
  EXPECT_TRUE(wants("GLOO", "auto"));
  EXPECT_TRUE(wants("mpi", "Gloo"));
  EXPECT_FALSE(wants("gloo", "native"));
  EXPECT_FALSE(wants("native", "mpi"));
}

const RankOffer kReady{"rank 0 (host a)", {true, ""}};

TEST(GlooChoice, IsUsedIfEveryRankHasIt) {
  const RankOffer ranks[] = {kReady, {"rank 1 (host b)", {true, ""}}};
  const auto decision = decide(ranks, false);
  ASSERT_TRUE(decision);
  EXPECT_TRUE(decision->uses_gloo);
  EXPECT_EQ(decision->note, "");
}

TEST(GlooChoice, ARankThatLacksItOrDoesNotAskIsNamed) {
  const RankOffer lacking[] = {kReady, {"rank 1 (host b)", {true, "it is not installed"}}};
  const auto without = decide(lacking, true);  // TLS is no matter where Gloo is not used
  ASSERT_TRUE(without);
  EXPECT_FALSE(without->uses_gloo);
  EXPECT_THAT(without->note, AllOf(HasSubstr("rank 1 (host b): it is not installed"),
                                   HasSubstr("own TCP engine carries the data")));
  const RankOffer silent[] = {kReady, {"rank 1 (host b)", {}}};
  const auto uneven = decide(silent, false);
  ASSERT_TRUE(uneven);
  EXPECT_THAT(uneven->note, HasSubstr("rank 1 (host b) does not ask for it"));
}

TEST(GlooChoice, NobodyIsToldOfWhatNobodyAskedFor) {
  const RankOffer ranks[] = {{"rank 0 (host a)", {}}, {"rank 1 (host b)", {}}};
  const auto decision = decide(ranks, true);
  ASSERT_TRUE(decision);
  EXPECT_FALSE(decision->uses_gloo);
  EXPECT_EQ(decision->note, "");
}

TEST(GlooChoice, EncryptionIsNotDroppedInSilence) {
  const RankOffer ranks[] = {kReady};
  EXPECT_THAT(decide(ranks, true).status().message(),
              AllOf(HasSubstr("HOROVOD_TLS=1"), HasSubstr("HOROVOD_CPU_OPERATIONS=native")));
}

TEST(GlooLibrary, LiesBesideTheLibraryOrWhereTheUserSays) {
  EXPECT_THAT(plugin_candidates(fake_environment({}), "/a/lib/libhorovod.so"),
              ElementsAre("/a/lib/libhorovod_gloo.so", "/a/lib/../lib/libhorovod_gloo.so"));
  EXPECT_THAT(plugin_candidates(fake_environment({{"HOROVOD_GLOO_PLUGIN", "/x.so"}}), "/a/b"),
              ElementsAre("/x.so"));
}

TEST(GlooLibrary, ATableOfAnotherVersionOrSizeIsRefused) {
  hvd_gloo_plugin table{};
  table.version = HVD_GLOO_PLUGIN_VERSION;
  table.struct_size = sizeof table;
  EXPECT_TRUE(check_table(&table, "x.so"));
  table.struct_size += 8;  // a newer one, whose beginning is ours
  EXPECT_TRUE(check_table(&table, "x.so"));
  table.struct_size = 16;
  EXPECT_THAT(check_table(&table, "x.so").status().message(), HasSubstr("a table of 16 bytes"));
  table = {.version = 99, .struct_size = sizeof table};
  EXPECT_THAT(check_table(&table, "x.so").status().message(), HasSubstr("has version 99"));
  EXPECT_THAT(check_table(nullptr, "x.so").status().message(),
              HasSubstr("x.so is not horovod's plug-in"));
}

}  // namespace
}  // namespace hvd::gloo
