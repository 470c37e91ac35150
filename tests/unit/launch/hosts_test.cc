#include "launch/plan/hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "launch/plan/assignment.h"
#include "launch/plan/lsf_hosts.h"
#include "launch/plan/slurm_hosts.h"

namespace hvd::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LaunchHosts, ReadsAList) {
  EXPECT_THAT(
      parse_hosts("h1:2,node-2.cluster_a:16,[fd00::1]:3").value(),
      ElementsAre(HostSlots{"h1", 2}, HostSlots{"node-2.cluster_a", 16}, HostSlots{"fd00::1", 3}));
  EXPECT_EQ(parse_hosts(" h1:2, h2:1 ").value(), parse_hosts("h1:2,h2:1").value());
  const auto repeated = parse_hosts("h1:2,h2:0,h1:1").value();
  EXPECT_THAT(repeated, ElementsAre(HostSlots{"h1", 2}, HostSlots{"h2", 0}, HostSlots{"h1", 1}));
  EXPECT_THAT(merge_hosts(repeated), ElementsAre(HostSlots{"h1", 3}, HostSlots{"h2", 0}));
}

TEST(LaunchHosts, RefusesWhatIsNoList) {
  for (const char* text : {"", "h1", "h1:", "h1:x", ":2", "h1:2,", "h1:2:3", "h 1:2", "h1:-1",
                           "-oProxyCommand=x:1", "[-x]:1", "[::1:2", "a;b:1"}) {
    EXPECT_FALSE(parse_hosts(text).is_ok()) << text;
  }
}

TEST(LaunchHosts, ReadsEveryFormOfAHostFile) {
  const auto hosts = parse_hostfile(
      "# my cluster\n\nh1 slots=2\nh2:3  # MPICH\r\nh3\n\th4   slots=4 max_slots=8\nh1 slots=1", 7);

  ASSERT_TRUE(hosts.is_ok()) << hosts.status().message();
  EXPECT_THAT(*hosts, ElementsAre(HostSlots{"h1", 2}, HostSlots{"h2", 3}, HostSlots{"h3", 7},
                                  HostSlots{"h4", 4}, HostSlots{"h1", 1}));
}

TEST(LaunchHosts, AMistakeInAHostFileIsNamedWithItsLine) {
  const std::vector<std::pair<const char*, const char*>> mistakes = {
      {"h1 slots=2\nh2 slot=2\n", "line 2: expected 'host slots=N' or 'host:N', got 'h2 slot=2'"},
      {"h1 slots=many", "line 1: slots of h1: expected an integer"},
      {"h1 slots=2 more", "line 1: expected 'host slots=N'"},
      {"\n\n-x slots=1", "line 3: expected host:slots"},
      {"# nothing\n", "no host in it"},
  };
  for (const auto& [text, message] : mistakes) {
    EXPECT_THAT(parse_hostfile(text, 1).status().message(), HasSubstr(message));
  }
}

TEST(LaunchHosts, KnowsTheNamesOfThisMachine) {
  for (const char* host : {"localhost", "127.0.0.1", "::1", "node7"}) {
    EXPECT_TRUE(is_own_name(host, "node7")) << host;
  }
  EXPECT_TRUE(is_own_name("node7", "node7.cluster"));
  EXPECT_TRUE(is_own_name("node7.cluster", "node7"));
  EXPECT_FALSE(is_own_name("node70", "node7"));
}

TEST(LaunchHosts, RanksFillHostsOneAfterTheOther) {
  const std::vector<HostSlots> hosts = {{"a", 2}, {"b", 1}, {"c", 3}};

  const auto ranks = assign_ranks(hosts, 5);

  ASSERT_TRUE(ranks.is_ok());
  // rank: host, local rank / size, cross rank / size
  const std::vector<std::array<int32_t, 5>> expected = {
      {0, 0, 2, 0, 3}, {0, 1, 2, 0, 2}, {1, 0, 1, 1, 3}, {2, 0, 2, 2, 3}, {2, 1, 2, 1, 2}};
  ASSERT_EQ(ranks->size(), expected.size());
  for (size_t rank = 0; rank < expected.size(); ++rank) {
    const Assignment& got = (*ranks)[rank];
    const std::array<int32_t, 5> values = {static_cast<int32_t>(got.host), got.place.local_rank,
                                           got.place.local_size, got.place.cross_rank,
                                           got.place.cross_size};
    EXPECT_EQ(values, expected[rank]) << "rank " << rank;
    EXPECT_EQ(got.place.rank, static_cast<int32_t>(rank));
    EXPECT_EQ(got.place.size, 5);
    EXPECT_EQ(got.place.hostname, hosts[got.host].host);
  }
}

TEST(LaunchSlurm, ExpandsListsOfNodes) {
  EXPECT_THAT(expand_nodelist("n[1-3,07],login").value(),
              ElementsAre("n1", "n2", "n3", "n07", "login"));
  EXPECT_THAT(expand_nodelist("r[1-2]c[08-09]x").value(),
              ElementsAre("r1c08x", "r1c09x", "r2c08x", "r2c09x"));
  for (const char* text : {"n[1-", "n[3-1]", "n[a]", ",n1", "n[0-9999999]"}) {
    EXPECT_FALSE(expand_nodelist(text).is_ok()) << text;
  }
  EXPECT_THAT(expand_counts("2(x3),1").value(), ElementsAre(2, 2, 2, 1));
  EXPECT_FALSE(expand_counts("2(x").is_ok());
}

TEST(LaunchSlurm, AnAllocationIsAListOfHostsButATaskOfSrunIsPlacedAlready) {
  const EnvironmentList batch = {"SLURM_JOB_NODELIST=n[1-2]", "SLURM_TASKS_PER_NODE=2,1",
                                 "SLURM_PROCID=0"};
  EnvironmentList task = batch;
  task.emplace_back("SLURM_STEP_NUM_TASKS=3");

  EXPECT_THAT(slurm_hosts(batch).value().value(),
              ElementsAre(HostSlots{"n1", 2}, HostSlots{"n2", 1}));
  EXPECT_FALSE(slurm_hosts(task).value().has_value());
  EXPECT_FALSE(slurm_hosts({}).value().has_value());
  EXPECT_THAT(
      slurm_hosts({"SLURM_JOB_NODELIST=n[1-2]", "SLURM_TASKS_PER_NODE=2"}).status().message(),
      HasSubstr("names 2 nodes"));
}

// What ssh would take for an option, and a shell for more than a name.
constexpr const char* kHostileNames[] = {"-oProxyCommand=touch /tmp/x",
                                         "n1;touch",
                                         "n1$(id)",
                                         "n1`id`",
                                         "n 1",
                                         "n1\nn2",
                                         "n1|x",
                                         "n1&",
                                         "../n",
                                         "n1'",
                                         "n1\"",
                                         "n1>x",
                                         "n1\x1b[2J",
                                         "*"};

TEST(LaunchHosts, NamesAreNamesWhoeverGaveThem) {
  for (const char* name : {"n1", "node-7.cluster", "10.0.0.1", "fd00::1", "fe80::1%eth0", "a_b"}) {
    EXPECT_TRUE(check_host_name(name)) << name;
  }
  EXPECT_FALSE(check_host_name(""));
  EXPECT_FALSE(check_host_name(std::string(256, 'n')));
  for (const char* name : kHostileNames) {
    const Status status = check_host_name(name);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(status.message(), ::testing::Not(HasSubstr("\x1b")));
  }
}

TEST(LaunchHosts, HostileNamesOfSlurmAndLsfReachNobody) {
  for (const char* name : kHostileNames) {
    const auto slurm = slurm_hosts({concat("SLURM_JOB_NODELIST=", name), "SLURM_TASKS_PER_NODE=2"});
    EXPECT_FALSE(slurm.is_ok()) << name;
    EXPECT_THAT(slurm.status().message(), HasSubstr("SLURM_")) << name;
    EXPECT_FALSE(compute_nodes(concat("compute_nodes:\n - \"", name, "\"\n"))) << name;
  }
  EXPECT_FALSE(
      slurm_hosts({"SLURM_JOB_NODELIST=-oProxyCommand=[1-2]", "SLURM_TASKS_PER_NODE=2(x2)"}));
}

TEST(LaunchLsf, ReadsTheQueries) {
  EXPECT_THAT(
      compute_nodes("---\nallocation_id: 7\ncompute_nodes:\n - c1\n - c2\nstate: x\n...\n").value(),
      ElementsAre("c1", "c2"));
  const auto shape =
      node_shape("---\nRecord_1:\n  discovered_cores: 44\n  discovered_gpus: 6\n...\n");
  ASSERT_TRUE(shape.is_ok()) << shape.status().message();
  EXPECT_EQ(shape->core_count, 44);
  EXPECT_EQ(shape->gpu_count, 6);
  EXPECT_EQ(threads_per_core("CPU(s): 8\nThread(s) per core:  4\n").value(), 4);
  EXPECT_FALSE(compute_nodes("state: x\n").is_ok());
}

}  // namespace
}  // namespace hvd::launch
