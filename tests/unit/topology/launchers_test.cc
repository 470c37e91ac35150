// Places that come from files as well as from the environment, as recorded where such launchers
// run.
#include <gmock/gmock.h>

#include <map>
#include <string>

#include "base/fake_environment.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "tests/unit/topology/place.h"
#include "topology/launcher.h"
#include "topology/sagemaker.h"

namespace hvd::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

FileReader files_of(Variables files) {
  return [files = std::move(files)](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    return found == files.end() ? std::nullopt : std::optional(found->second);
  };
}

Topology find(const Variables& variables, const Variables& files = {}) {
  auto topology = topology_from(fake_environment(variables), files_of(files));
  EXPECT_TRUE(topology.is_ok()) << topology.status().message();
  return topology.is_ok() ? *std::move(topology) : Topology{};
}

std::string refusal_of(const Variables& variables, const Variables& files = {}) {
  const auto topology = topology_from(fake_environment(variables), files_of(files));
  return topology.is_ok() ? "no error" : topology.status().message();
}

// What a pod of an Indexed Job with `subdomain: train` sees.
Variables pod(int index, Variables more = {}) {
  more.insert({{"JOB_COMPLETION_INDEX", concat(index)},
               {"HOSTNAME", concat("train-", index)},
               {"KUBERNETES_SERVICE_HOST", "10.96.0.1"},
               {"KUBERNETES_SERVICE_PORT", "443"}});
  return more;
}
Variables hosts_file(int index) {
  return {{"/etc/hosts",
           concat("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n"
                  "::1\tlocalhost ip6-localhost ip6-loopback\n10.244.1.",
                  index, "\ttrain-", index, ".train.ml.svc.cluster.local\ttrain-", index, "\n")}};
}

TEST(IndexedJob, PodsMeetAtTheFirst) {
  const Topology topology = find(pod(2, {{"HOROVOD_SIZE", "4"}}), hosts_file(2));

  EXPECT_EQ(place_of(topology), "2/4 0/1 2/4");
  EXPECT_EQ(topology.launcher, Launcher::kIndexedJob);
  EXPECT_EQ(topology.hostname, "train-2");
  EXPECT_EQ(topology.first_host, "train-0.train.ml.svc.cluster.local");
  EXPECT_NE(topology.store_port, 0);
  EXPECT_EQ(topology.job_id, "pods-train");
}

TEST(IndexedJob, APodMayHaveSeveralRanks) {
  const Variables variables =
      pod(1, {{"HOROVOD_SIZE", "4"}, {"HOROVOD_LOCAL_RANK", "1"}, {"HOROVOD_LOCAL_SIZE", "2"}});

  EXPECT_EQ(place_of(find(variables, hosts_file(1))), "3/4 1/2 1/2");
}

// Pods of other Indexed Jobs have nothing to do with each other.
TEST(IndexedJob, AnIndexAloneIsNoPlace) { EXPECT_EQ(place_of(find(pod(1))), "0/1 0/1 0/1"); }

TEST(IndexedJob, AnInnerLauncherWins) {
  const Variables variables = pod(1, {{"HOROVOD_RANK", "0"}, {"HOROVOD_SIZE", "2"}});

  EXPECT_EQ(find(variables).launcher, Launcher::kHorovodrun);
}

TEST(IndexedJob, WithoutAServiceNobodyKnowsTheFirstPod) {
  const Variables short_names{{"/etc/hosts", "10.244.1.2\ttrain-2\n"}};

  EXPECT_EQ(find(pod(2, {{"HOROVOD_SIZE", "4"}}), short_names).first_host, "");
  EXPECT_EQ(find(pod(2, {{"HOROVOD_SIZE", "4"}})).first_host, "");
}

TEST(IndexedJob, ErrorsNameTheVariable) {
  EXPECT_THAT(refusal_of(pod(4, {{"HOROVOD_SIZE", "4"}})),
              HasSubstr("JOB_COMPLETION_INDEX: expected 0 to 3 (HOROVOD_SIZE is 4"));
  EXPECT_EQ(
      refusal_of(pod(
          0, {{"HOROVOD_SIZE", "3"}, {"HOROVOD_LOCAL_RANK", "0"}, {"HOROVOD_LOCAL_SIZE", "2"}})),
      "HOROVOD_SIZE: expected a multiple of HOROVOD_LOCAL_SIZE, 2, got 3");
}

constexpr char kResources[] = R"({
  "current_host": "algo-10",
  "current_instance_type": "ml.p4d.24xlarge",
  "current_group_name": "homogeneousCluster",
  "hosts": ["algo-1", "algo-10", "algo-2"],
  "instance_groups": [{"instance_group_name": "homogeneousCluster", "instance_type": "ml.p4d.24xlarge",
                       "hosts": ["algo-1", "algo-10", "algo-2"]}],
  "network_interface_name": "eth0"
})";

TEST(SageMaker, TheResourceFileGivesThePlace) {
  const Topology topology = find({}, {{kResourceFile, kResources}});

  EXPECT_EQ(place_of(topology), "2/3 0/1 2/3");
  EXPECT_EQ(topology.launcher, Launcher::kSageMaker);
  EXPECT_EQ(topology.hostname, "algo-10");
  EXPECT_EQ(topology.first_host, "algo-1");
}

TEST(SageMaker, SeveralRanksOfAHost) {
  const Variables local{{"HOROVOD_LOCAL_RANK", "3"}, {"HOROVOD_LOCAL_SIZE", "8"}};

  EXPECT_EQ(place_of(find(local, {{kResourceFile, kResources}})), "19/24 3/8 2/3");
}

TEST(SageMaker, TheToolkitsVariablesDoWithoutTheFile) {
  const Variables toolkit{{"SM_HOSTS", R"(["algo-1","algo-2"])"}, {"SM_CURRENT_HOST", "algo-2"}};

  EXPECT_EQ(place_of(find(toolkit)), "1/2 0/1 1/2");
}

TEST(SageMaker, OneHostIsAJobOfOne) {
  const Variables files{{kResourceFile, R"({"current_host":"algo-1","hosts":["algo-1"]})"}};

  EXPECT_EQ(place_of(find({}, files)), "0/1 0/1 0/1");
}

// mpirun of the toolkit, torchrun and horovodrun run inside such containers.
TEST(SageMaker, AnyLauncherWins) {
  const Variables mpi{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}};

  EXPECT_EQ(place_of(find(mpi, {{kResourceFile, kResources}})), "1/2 1/2 0/1");
}

TEST(SageMaker, ErrorsNameTheFile) {
  const auto error = [](const char* text) { return refusal_of({}, {{kResourceFile, text}}); };

  EXPECT_THAT(error("{"), HasSubstr(concat(kResourceFile, ": expected '\"' at character 1")));
  EXPECT_THAT(error("{}"), HasSubstr("expected a \"current_host\" and a list \"hosts\""));
  EXPECT_THAT(error(R"({"current_host":"x","hosts":["a","b"]})"),
              HasSubstr("expected the current host, 'x', among the 2 hosts"));
}

// As srun of Slurm 22.05 sets them on the second of two nodes.
const Variables kSrunTask{
    {"SLURM_JOB_ID", "7"},           {"SLURM_JOB_NODELIST", "n[1-2]"},
    {"SLURM_JOB_NUM_NODES", "2"},    {"SLURM_LAUNCH_NODE_IPADDR", "10.77.0.1"},
    {"SLURM_LOCALID", "0"},          {"SLURM_NODEID", "1"},
    {"SLURM_NTASKS", "3"},           {"SLURM_PROCID", "2"},
    {"SLURM_STEP_ID", "0"},          {"SLURM_STEP_NODELIST", "n[1-2]"},
    {"SLURM_STEP_NUM_TASKS", "3"},   {"SLURM_STEP_TASKS_PER_NODE", "2,1"},
    {"SLURM_TASKS_PER_NODE", "2,1"}, {"SLURMD_NODENAME", "n2"}};

TEST(Slurm, TasksMeetAtTheFirstNodeOfTheirStep) {
  const Topology topology = find(kSrunTask);

  EXPECT_EQ(place_of(topology), "2/3 0/1 1/2");
  EXPECT_EQ(topology.launcher, Launcher::kSlurm);
  EXPECT_EQ(topology.first_host, "n1");
  EXPECT_GE(topology.store_port, 20000);
  EXPECT_LT(topology.store_port, 30000);
}

TEST(Slurm, StepsHavePortsOfTheirOwn) {
  Variables next = kSrunTask;
  next["SLURM_STEP_ID"] = "1";

  EXPECT_NE(find(kSrunTask).store_port, find(next).store_port);
}

TEST(Slurm, UnderPmiTheLauncherIsTheProcessManager) {
  Variables pmi = kSrunTask;
  pmi.insert({{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}, {"PMI_FD", "9"}, {"PMI_JOBID", "7.0"}});

  EXPECT_EQ(find(pmi).launcher, Launcher::kPmi);
  EXPECT_EQ(place_of(find(pmi)), "2/3 0/1 1/2");
}

TEST(Json, TakesStringsAndListsOfStrings) {
  const auto fields = parse_json_object(
      R"( {"a":"x\n\"y", "b": [ "1" , "2" ], "c": 3, "d": {"e": [1, {"f": null}]}, "g": [] } )");

  ASSERT_TRUE(fields) << fields.status().message();
  EXPECT_THAT(fields->at("a"), ElementsAre("x\n\"y"));
  EXPECT_THAT(fields->at("b"), ElementsAre("1", "2"));
  EXPECT_TRUE(fields->at("g").empty());
  EXPECT_EQ(fields->size(), 3u);
}

TEST(Json, RefusesWhatIsNoJson) {
  const std::string deep(1000, '[');
  for (const std::string& text :
       {std::string(""), std::string("{"), std::string("{\"a\"}"), std::string("{\"a\":}"),
        std::string("{\"a\":1,}"), std::string("{} x"), std::string("{\"a\":\"\\u0041\"}"),
        "{\"a\":" + deep}) {
    EXPECT_FALSE(parse_json_object(text)) << text;
  }
  EXPECT_FALSE(parse_json_strings("[1]"));
  EXPECT_FALSE(parse_json_strings("\"a\""));
}

}  // namespace
}  // namespace hvd::topology
