#include "topology/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "base/fake_environment.h"
#include "base/text.h"
#include "tests/unit/topology/place.h"

namespace hvd::topology {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Variables operator+(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

Topology valid_topology(const Variables& variables) {
  auto topology = topology_from_environment(fake_environment(variables));
  EXPECT_TRUE(topology.is_ok()) << topology.status().message();
  return topology.is_ok() ? *std::move(topology) : Topology{};
}

std::string error_of(const Variables& variables) {
  const auto topology = topology_from_environment(fake_environment(variables));
  return topology.is_ok() ? "no error" : topology.status().message();
}

std::string place_of(const Variables& variables) { return place_of(valid_topology(variables)); }

Variables horovodrun(const char* rank, const char* size) {
  return {{"HOROVOD_RANK", rank}, {"HOROVOD_SIZE", size}};
}
Variables open_mpi(const char* rank, const char* size, const char* local_rank,
                   const char* local_size) {
  return {{"OMPI_COMM_WORLD_RANK", rank},
          {"OMPI_COMM_WORLD_SIZE", size},
          {"OMPI_COMM_WORLD_LOCAL_RANK", local_rank},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", local_size},
          {"PMIX_NAMESPACE", "1922170881"},
          {"PMIX_RANK", rank}};
}
Variables hydra(const char* rank, const char* size, const char* local_rank,
                const char* local_size) {
  return {{"PMI_RANK", rank},
          {"PMI_SIZE", size},
          {"MPI_LOCALRANKID", local_rank},
          {"MPI_LOCALNRANKS", local_size}};
}
// Task `rank` of a step on nodes with these numbers of tasks.
Variables srun(const char* rank, const char* size, const char* local_rank, const char* node,
               const char* tasks_per_node) {
  return {{"SLURM_PROCID", rank},         {"SLURM_NTASKS", size},
          {"SLURM_STEP_NUM_TASKS", size}, {"SLURM_LOCALID", local_rank},
          {"SLURM_NODEID", node},         {"SLURM_STEP_TASKS_PER_NODE", tasks_per_node},
          {"SLURM_JOB_ID", "17"},         {"SLURM_STEP_ID", "3"},
          {"SLURMD_NODENAME", "n1"}};
}
Variables torch(const char* rank, const char* size, const char* local_rank, const char* local_size,
                const char* group_rank, const char* group_size) {
  return {{"RANK", rank},
          {"WORLD_SIZE", size},
          {"LOCAL_RANK", local_rank},
          {"LOCAL_WORLD_SIZE", local_size},
          {"GROUP_RANK", group_rank},
          {"GROUP_WORLD_SIZE", group_size},
          {"MASTER_ADDR", "10.0.0.1"},
          {"MASTER_PORT", "29500"}};
}
const Variables kTorchElastic = {{"TORCHELASTIC_RUN_ID", "run"},
                                 {"TORCHELASTIC_RESTART_COUNT", "0"}};

TEST(TopologyFromEnvironment, IsAJobOfOneWithoutALauncher) {
  const Topology topology = valid_topology({});

  EXPECT_EQ(place_of(topology), "0/1 0/1 0/1");
  EXPECT_EQ(topology.job_id, "");
  EXPECT_FALSE(topology.hostname.empty());
}

TEST(TopologyFromEnvironment, KnowsEachLauncher) {
  const Variables local{{"HOROVOD_LOCAL_RANK", "1"}, {"HOROVOD_LOCAL_SIZE", "2"}};
  const Variables cross{{"HOROVOD_CROSS_RANK", "1"}, {"HOROVOD_CROSS_SIZE", "2"}};
  const std::pair<Variables, const char*> rows[] = {
      {horovodrun("3", "4") + local + cross, "3/4 1/2 1/2"},
      {open_mpi("1", "4", "1", "4"), "1/4 1/4 0/1"},
      {open_mpi("3", "4", "1", "2"), "3/4 1/2 1/2"},
      {hydra("2", "3", "2", "3"), "2/3 2/3 0/1"},
      {{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"PMI_LOCAL_RANK", "0"}, {"PMI_LOCAL_SIZE", "1"}},
       "1/2 0/1 1/2"},
      {srun("1", "2", "1", "0", "2"), "1/2 1/2 0/1"},
      {srun("3", "4", "1", "1", "2(x2)"), "3/4 1/2 1/2"},
      {torch("1", "2", "1", "2", "0", "1") + kTorchElastic, "1/2 1/2 0/1"},
      {torch("5", "8", "1", "4", "1", "2"), "5/8 1/4 1/2"},
  };
  for (const auto& [variables, place] : rows) EXPECT_EQ(place_of(variables), place);
}

TEST(TopologyFromEnvironment, CompletesOneHostFromRankAndSize) {
  EXPECT_EQ(place_of(horovodrun("2", "4")), "2/4 2/4 0/1");
  EXPECT_EQ(place_of({{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}}), "1/3 1/3 0/1");
  EXPECT_EQ(place_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), "0/2 0/2 0/1");
}

TEST(TopologyFromEnvironment, CompletesEqualHostsFilledOneAfterTheOther) {
  const char* places[] = {"0/6 0/2 0/3", "1/6 1/2 0/3", "2/6 0/2 1/3",
                          "3/6 1/2 1/3", "4/6 0/2 2/3", "5/6 1/2 2/3"};
  for (int rank = 0; rank < 6; ++rank) {
    const std::string text = concat(rank);
    EXPECT_EQ(place_of(open_mpi(text.c_str(), "6", concat(rank % 2).c_str(), "2")), places[rank]);
  }
}

TEST(TopologyFromEnvironment, AsksForCrossRanksWhereTheyCannotBeKnown) {
  const Variables round_robin = open_mpi("1", "4", "0", "2");
  const Variables unequal = open_mpi("0", "4", "0", "3");
  for (const Variables& variables : {round_robin, unequal}) {
    EXPECT_THAT(error_of(variables), HasSubstr("set HOROVOD_CROSS_RANK and HOROVOD_CROSS_SIZE"));
  }

  const Variables cross{{"HOROVOD_CROSS_RANK", "1"}, {"HOROVOD_CROSS_SIZE", "2"}};
  EXPECT_EQ(place_of(round_robin + cross), "1/4 0/2 1/2");
}

TEST(TopologyFromEnvironment, PrefersTheInnermostLauncher) {
  const Variables run = horovodrun("0", "2");
  const Variables ompi = open_mpi("1", "3", "1", "3");
  const Variables pmi = hydra("2", "4", "2", "4");
  const Variables slurm = srun("3", "5", "3", "0", "5");
  const Variables hand = torch("4", "6", "4", "6", "0", "1");
  const std::pair<Variables, const char*> rows[] = {
      {run + ompi + pmi + slurm + hand + kTorchElastic, "0/2 0/2 0/1"},
      {ompi + pmi + slurm + hand, "1/3 1/3 0/1"},
      {pmi + slurm + hand, "2/4 2/4 0/1"},
      {slurm + hand, "3/5 3/5 0/1"},
      {hand, "4/6 4/6 0/1"},
      // torchrun, started once per node by one of the others.
      {ompi + pmi + slurm + hand + kTorchElastic, "4/6 4/6 0/1"},
  };
  for (const auto& [variables, place] : rows) EXPECT_EQ(place_of(variables), place);
}

TEST(TopologyFromEnvironment, PmiUnderSrunTakesTheLocalPlaceFromSlurm) {
  const Variables pmi2{{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"PMI_JOBID", "17.3"}};
  const Topology topology = valid_topology(pmi2 + srun("3", "4", "1", "1", "2(x2)"));

  EXPECT_EQ(place_of(topology), "3/4 1/2 1/2");
  EXPECT_EQ(topology.job_id, "slurm-17-3");
}

TEST(TopologyFromEnvironment, ABatchScriptIsNotASlurmTask) {
  const Variables batch{{"SLURM_PROCID", "0"},
                        {"SLURM_NTASKS", "8"},
                        {"SLURM_JOB_ID", "17"},
                        {"SLURM_LOCALID", "0"},
                        {"SLURM_NODEID", "0"}};
  EXPECT_EQ(place_of(batch), "0/1 0/1 0/1");
  for (const char* step : {"batch", "interactive", "4294967291", "4294967290", ""}) {
    EXPECT_EQ(place_of(batch + Variables{{"SLURM_STEP_ID", step}}), "0/1 0/1 0/1") << step;
  }
}

TEST(TopologyFromEnvironment, SlurmCountsTheTasksOfTheStepNotOfTheAllocation) {
  EXPECT_EQ(place_of(srun("1", "2", "1", "0", "2") + Variables{{"SLURM_NTASKS", "8"}}),
            "1/2 1/2 0/1");
}

// Nodes with 3, 1, 1 and 2 tasks: local rank 0 lives on four of them, 1 on two, 2 on one.
TEST(TopologyFromEnvironment, SlurmNodesMayDiffer) {
  const char* tasks = "3,1(x2),2";
  const std::pair<Variables, const char*> rows[] = {
      {srun("0", "7", "0", "0", tasks), "0/7 0/3 0/4"},
      {srun("1", "7", "1", "0", tasks), "1/7 1/3 0/2"},
      {srun("2", "7", "2", "0", tasks), "2/7 2/3 0/1"},
      {srun("3", "7", "0", "1", tasks), "3/7 0/1 1/4"},
      {srun("4", "7", "0", "2", tasks), "4/7 0/1 2/4"},
      {srun("5", "7", "0", "3", tasks), "5/7 0/2 3/4"},
      {srun("6", "7", "1", "3", tasks), "6/7 1/2 1/2"},
  };
  for (const auto& [variables, place] : rows) {
    EXPECT_EQ(place_of(variables), place);
    EXPECT_FALSE(valid_topology(variables).is_homogeneous());
  }
}

TEST(TopologyFromEnvironment, ErrorsNameTheVariable) {
  const std::pair<Variables, const char*> rows[] = {
      {{{"HOROVOD_RANK", "0"}}, "HOROVOD_RANK is set, but HOROVOD_SIZE is not"},
      {{{"HOROVOD_SIZE", "2"}}, "HOROVOD_SIZE is set, but HOROVOD_RANK is not"},
      {{{"OMPI_COMM_WORLD_RANK", "0"}},
       "OMPI_COMM_WORLD_RANK is set, but OMPI_COMM_WORLD_SIZE is not"},
      {{{"WORLD_SIZE", "2"}}, "WORLD_SIZE is set, but RANK is not"},
      {horovodrun("x", "2"), "HOROVOD_RANK: expected an integer, got 'x'"},
      {horovodrun("-1", "2"), "HOROVOD_RANK: expected an integer from 0 to 2147483647, got '-1'"},
      {horovodrun("0", "0"), "HOROVOD_SIZE: expected an integer from 1 to 2147483647, got '0'"},
      {horovodrun("2", "2"), "HOROVOD_RANK: expected 0 to 1 (HOROVOD_SIZE is 2), got 2"},
      {horovodrun("0", "4294967297"),
       "HOROVOD_SIZE: expected an integer from 1 to 2147483647, got '4294967297'"},
      {horovodrun("0", "2") + Variables{{"HOROVOD_LOCAL_RANK", "0"}},
       "HOROVOD_LOCAL_RANK is set, but HOROVOD_LOCAL_SIZE is not"},
      {horovodrun("0", "2") + Variables{{"HOROVOD_CROSS_RANK", "5"}, {"HOROVOD_CROSS_SIZE", "2"}},
       "HOROVOD_CROSS_RANK: expected 0 to 1 (HOROVOD_CROSS_SIZE is 2), got 5"},
      {hydra("0", "2", "2", "2"), "MPI_LOCALRANKID: expected 0 to 1 (MPI_LOCALNRANKS is 2), got 2"},
      {srun("0", "2", "0", "0", "2(x"),
       "SLURM_STEP_TASKS_PER_NODE: expected tasks of each node like '2(x3),1', got '2(x'"},
      {srun("0", "2", "0", "0", "2(x2"),
       "SLURM_STEP_TASKS_PER_NODE: expected tasks of each node like '2(x3),1', got '2(x2'"},
      {srun("0", "3", "0", "0", "2(x2)"),
       "SLURM_STEP_TASKS_PER_NODE: expected the 3 tasks of SLURM_STEP_NUM_TASKS, got '2(x2)'"},
      {srun("0", "3", "0", "0", "2147483647(x2147483647),2147483647(x2147483647),3"),
       "SLURM_STEP_TASKS_PER_NODE: expected the 3 tasks of SLURM_STEP_NUM_TASKS, got "
       "'2147483647(x2147483647),2147483647(x2147483647),3'"},
      {srun("0", "2", "0", "2", "1(x2)"),
       "SLURM_NODEID: expected a node of SLURM_STEP_TASKS_PER_NODE '1(x2)', got 2"},
      {srun("1", "2", "1", "0", "1,1"),
       "SLURM_LOCALID: expected 0 to 0 (SLURM_STEP_TASKS_PER_NODE is '1,1'), got 1"},
      {torch("x", "2", "0", "1", "0", "1"), "RANK: expected an integer, got 'x'"},
      {horovodrun("0", "2") + Variables{{"HOROVOD_LOCAL_RANK", "0"},
                                        {"HOROVOD_LOCAL_SIZE", "4"},
                                        {"HOROVOD_CROSS_RANK", "0"},
                                        {"HOROVOD_CROSS_SIZE", "1"}},
       "local size: expected at most 2, the size of the job, got 4"},
  };
  for (const auto& [variables, message] : rows) EXPECT_EQ(error_of(variables), message);
}

TEST(TopologyFromEnvironment, SeveralHostsNeedLocalRanks) {
  EXPECT_THAT(error_of(horovodrun("0", "2") +
                       Variables{{"HOROVOD_CROSS_RANK", "0"}, {"HOROVOD_CROSS_SIZE", "2"}}),
              StartsWith("HOROVOD_CROSS_SIZE is 2, but nothing says the local rank"));
}

TEST(TopologyFromEnvironment, EmptyValuesCountAsUnset) {
  EXPECT_EQ(place_of(horovodrun("", " ") + hydra("1", "2", "1", "2")), "1/2 1/2 0/1");
}

TEST(TopologyFromEnvironment, NamesTheJobByWhatTheLauncherGives) {
  const Variables rendezvous{{"HOROVOD_GLOO_RENDEZVOUS_ADDR", "10.0.0.1"},
                             {"HOROVOD_GLOO_RENDEZVOUS_PORT", "4711"}};
  const std::pair<Variables, const char*> rows[] = {
      {horovodrun("0", "2") + Variables{{"HOROVOD_JOB_ID", "mine"}}, "mine"},
      {open_mpi("0", "2", "0", "2") + Variables{{"HOROVOD_JOB_ID", "mine"}}, "mine"},
      {horovodrun("0", "2") + rendezvous, "rendezvous-10.0.0.1-4711"},
      {open_mpi("0", "2", "0", "2"), "ompi-1922170881"},
      {srun("0", "2", "0", "0", "2"), "slurm-17-3"},
      {torch("0", "2", "0", "2", "0", "1") + kTorchElastic, "torch-10.0.0.1-29500-run-0"},
  };
  for (const auto& [variables, job_id] : rows) EXPECT_EQ(valid_topology(variables).job_id, job_id);
}

TEST(TopologyFromEnvironment, NamesTheJobByItsParentAsALastResort) {
  const std::string job_id = valid_topology(hydra("0", "2", "0", "2")).job_id;

  // The parent's start time, in clock ticks since boot, follows its id.
  EXPECT_THAT(job_id, ::testing::MatchesRegex(concat("parent-", ::getppid(), "-[0-9]+")));
  EXPECT_EQ(valid_topology(hydra("1", "2", "1", "2")).job_id, job_id);
}

TEST(TopologyFromEnvironment, AJobOfOneHasNoName) {
  EXPECT_EQ(valid_topology(horovodrun("0", "1") + Variables{{"HOROVOD_JOB_ID", "mine"}}).job_id,
            "");
}

TEST(TopologyFromEnvironment, HostnameComesFromTheUserThenSlurmThenTheMachine) {
  char machine[256] = {};
  ASSERT_EQ(::gethostname(machine, sizeof machine - 1), 0);
  const Variables slurm = srun("0", "2", "0", "0", "2");

  EXPECT_EQ(valid_topology(slurm + Variables{{"HOROVOD_HOSTNAME", "mine"}}).hostname, "mine");
  EXPECT_EQ(valid_topology(slurm).hostname, "n1");
  EXPECT_EQ(valid_topology(horovodrun("0", "2")).hostname, machine);
}

TEST(CheckTopology, AcceptsPlacesInRange) {
  EXPECT_TRUE(check_topology({}).is_ok());
  EXPECT_TRUE(check_topology({.rank = 3,
                              .size = 4,
                              .local_rank = 1,
                              .local_size = 2,
                              .cross_rank = 1,
                              .cross_size = 2})
                  .is_ok());
}

TEST(CheckTopology, RefusesPlacesOutOfRange) {
  const std::pair<Topology, const char*> rows[] = {
      {{.rank = 1}, "rank: expected 0 to 0 (size is 1), got 1"},
      {{.rank = -1}, "rank: expected 0 to 0 (size is 1), got -1"},
      {{.size = 0}, "size: expected 1 or more, got 0"},
      {{.local_rank = 2}, "local rank: expected 0 to 0 (local size is 1), got 2"},
      {{.local_size = -1}, "local size: expected 1 or more, got -1"},
      {{.cross_rank = 1}, "cross rank: expected 0 to 0 (cross size is 1), got 1"},
      {{.size = 2, .local_size = 3}, "local size: expected at most 2, the size of the job, got 3"},
      {{.size = 2, .cross_size = 3}, "cross size: expected at most 2, the size of the job, got 3"},
  };
  for (const auto& [topology, message] : rows) {
    EXPECT_EQ(check_topology(topology), invalid_argument(message));
  }
}

TEST(Topology, IsHomogeneousWhenAllHostsHaveAsManyRanks) {
  EXPECT_TRUE(Topology{}.is_homogeneous());
  EXPECT_TRUE((Topology{.size = 6, .local_size = 2, .cross_size = 3}).is_homogeneous());
  EXPECT_FALSE((Topology{.size = 5, .local_size = 3, .cross_size = 2}).is_homogeneous());
}

}  // namespace
}  // namespace hvd::topology
