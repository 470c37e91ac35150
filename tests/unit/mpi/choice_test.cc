// When MPI is used, and for what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fake_environment.h"
#include "mpi/choice.h"
#include "mpi/find_library.h"

namespace hvd::mpi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

const Variables kOneHost = {{"OMPI_COMM_WORLD_RANK", "1"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
const Variables kTwoHosts = {{"OMPI_COMM_WORLD_RANK", "1"},
                             {"OMPI_COMM_WORLD_SIZE", "4"},
                             {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                             {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
const Variables kHydra = {
    {"PMI_RANK", "1"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}};

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

enum class Expected { kNone, kNative, kMpi };

Expected chosen(const Variables& variables, const Wishes& wishes = {}) {
  const auto choice = choose(fake_environment(variables), wishes);
  EXPECT_TRUE(choice) << choice.status().message();
  if (!choice || !choice->uses_mpi) return Expected::kNone;
  return choice->carrier == Carrier::kMpi ? Expected::kMpi : Expected::kNative;
}

TEST(MpiChoice, TakesMpiWhereMpirunHasStartedSeveralHosts) {
  EXPECT_EQ(chosen({}), Expected::kNone);
  EXPECT_EQ(chosen(kOneHost), Expected::kNone);
  EXPECT_EQ(chosen(kTwoHosts), Expected::kMpi);
  EXPECT_EQ(chosen(kHydra), Expected::kMpi);
}

TEST(MpiChoice, LeavesTheDataToOurOwnLinkIfAsked) {
  EXPECT_EQ(chosen(with(kTwoHosts, {{"HOROVOD_CPU_OPERATIONS", "native"}})), Expected::kNative);
  EXPECT_EQ(chosen(with(kTwoHosts, {{"HOROVOD_CPU_OPERATIONS", "GLOO"}})), Expected::kNative);
  EXPECT_EQ(chosen(with(kTwoHosts, {{"HOROVOD_CPU_OPERATIONS", "ccl"}})), Expected::kMpi);
}

TEST(MpiChoice, FollowsWhatTheUserAsksFor) {
  EXPECT_EQ(chosen({{"HOROVOD_CONTROLLER", "MPI"}}), Expected::kMpi);
  EXPECT_EQ(chosen({{"HOROVOD_CPU_OPERATIONS", "mpi"}}), Expected::kMpi);
  EXPECT_EQ(chosen({}, {.has_comm = true}), Expected::kMpi);
  EXPECT_EQ(chosen(with(kTwoHosts, {{"HOROVOD_CONTROLLER", "gloo"}})), Expected::kNone);
  EXPECT_EQ(chosen(with(kTwoHosts, {{"HOROVOD_CONTROLLER", "native"}})), Expected::kNone);
  EXPECT_EQ(chosen(with(kTwoHosts, {{"HOROVOD_RENDEZVOUS_ADDR", "10.0.0.1"}})), Expected::kNone);
}

TEST(MpiChoice, KeepsOutWhereAnotherLauncherRunsInsideOfMpirun) {
  EXPECT_EQ(chosen(with(kTwoHosts, {{"HOROVOD_RANK", "0"}, {"HOROVOD_SIZE", "2"}})),
            Expected::kNone);
  EXPECT_EQ(chosen(with(kTwoHosts, {{"TORCHELASTIC_RUN_ID", "7"}})), Expected::kNone);
}

TEST(MpiChoice, TakesARankListForMpiOnlyWhereThereIsMpi) {
  EXPECT_EQ(chosen({}, {.has_ranks = true}), Expected::kNone);
  EXPECT_EQ(chosen({}, {.has_ranks = true, .is_loaded = true}), Expected::kMpi);
  EXPECT_EQ(chosen(kOneHost, {.has_ranks = true}), Expected::kMpi);
}

TEST(MpiChoice, RefusesContradictions) {
  const auto comm = choose(fake_environment({{"HOROVOD_CONTROLLER", "gloo"}}), {.has_comm = true});
  const auto data = choose(
      fake_environment({{"HOROVOD_CONTROLLER", "native"}, {"HOROVOD_CPU_OPERATIONS", "mpi"}}), {});

  EXPECT_THAT(comm.status().message(), HasSubstr("HOROVOD_CONTROLLER is gloo"));
  EXPECT_THAT(data.status().message(), HasSubstr("HOROVOD_CONTROLLER is native"));
}

TEST(MpiLibrary, NamesOfTheLaunchersFamilyComeFirst) {
  EXPECT_THAT(usual_names(fake_environment(kTwoHosts)),
              ElementsAre("libmpi.so.40", "libmpi_abi.so.1"));
  EXPECT_THAT(usual_names(fake_environment(kHydra)),
              ElementsAre("libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.1"));
}

TEST(MpiLibrary, IsToldFromItsCompanions) {
  for (const char* name : {"libmpi.so.40", "/x/libmpi.so.12.1.0", "libmpich.so.12", "libmpi.so",
                           "/usr/lib/libmpi_abi.so.1"}) {
    EXPECT_TRUE(is_library_name(name)) << name;
  }
  for (const char* name : {"libmpi_cxx.so.40", "libmpichcxx.so.12", "libmpifort.so.12",
                           "libopen-pal.so.80", "/libmpi.so.d/x.so", ""}) {
    EXPECT_FALSE(is_library_name(name)) << name;
  }
}

}  // namespace
}  // namespace hvd::mpi
