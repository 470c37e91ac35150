// Elastic jobs over "other hosts" that are this machine under other names (remote_stub.h), reached
// through the real agent.
#include <csignal>

#include "tests/process/elastic_fixture.h"
#include "tests/process/remote_stub.h"

namespace hvd::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ElasticHosts : public ElasticJobs {
 protected:
  // Of a process: "PPid:" is the number of the one that started it.
  static pid_t parent_of(pid_t pid) {
    std::ifstream file(concat("/proc/", pid, "/status"));
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("PPid:")) return std::atoi(line.c_str() + 5);
    }
    return -1;
  }

  RemoteStub stub_;
};

TEST_F(ElasticHosts, SigtermToAnAgentIsAPlannedLeaveOfItsWorkers) {
  LaunchedJob job(command({"-np", "3", "--min-np", "1", "-H", "localhost:1,far:2"}),
                  {.environment = stub_.environment()});
  ASSERT_TRUE(wait_for_world(job, 1, 3)) << job.err();

  ::kill(parent_of(process(job, 1, 2, 3)), SIGTERM);
  ASSERT_TRUE(job.wait_for(" rank 0 of 1 is ")) << job.err();
  stop();

  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.err(), HasSubstr("rank 1 on far left as it was asked to"));
  EXPECT_THAT(job.err(), HasSubstr("rank 2 on far left as it was asked to"));
  EXPECT_THAT(job.err(), Not(HasSubstr("lost")));
}

TEST_F(ElasticHosts, WhenAllAreAskedToLeaveTheJobSaysSo) {
  LaunchedJob job(command({"-np", "1", "--min-np", "1", "-H", "far:1"}),
                  {.environment = stub_.environment()});
  ASSERT_TRUE(wait_for_world(job, 1, 1)) << job.err();

  ::kill(parent_of(process(job, 1, 0, 1)), SIGTERM);

  EXPECT_EQ(job.wait(), 1);
  EXPECT_THAT(job.err(), HasSubstr("all workers that had the state of the training were asked to "
                                   "leave: rank 0 on far left as it was asked to"));
}

TEST_F(ElasticHosts, AHostThatRefusesAtFirstIsTriedAgain) {
  write_hosts("localhost:1\n");
  // Nobody listens there until the host list has been read for the second time.
  const std::string ssh = directory_ / "ssh";
  std::ofstream(ssh)
      << "#!/bin/sh\n[ -e '" << ssh << ".up' ] && exec sh -c \"$2\"\n"
      << "touch '" << ssh << ".up'\n"
      << "echo 'ssh: connect to host pod port 22: Connection refused' >&2\nexit 255\n";
  std::filesystem::permissions(ssh, std::filesystem::perms::owner_all);
  LaunchedJob job(command({"-np", "1", "--min-np", "1", "--hostfile", hosts_file()}),
                  {.environment = {"HOROVOD_SSH_COMMAND=" + ssh}});
  ASSERT_TRUE(wait_for_world(job, 1, 1)) << job.err();

  write_hosts("localhost:1\npod:1\n");
  ASSERT_TRUE(wait_for_world(job, 2, 2)) << job.err();
  stop();

  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.err(), HasSubstr("Connection refused"));
}

TEST_F(ElasticHosts, WithoutANumberTheLeastIsEnoughToBegin) {
  write_hosts("localhost\n");
  LaunchedJob job(command({"--min-np", "2", "--max-np", "8", "--host-discovery-script",
                           "cat '" + hosts_file() + "'", "--slots", "3", "--reset-limit", "9",
                           "--elastic-timeout", "100", "--blacklist-cooldown-range", "1", "2"}));
  ASSERT_TRUE(wait_for_world(job, 1, 3)) << job.err();
  stop();

  EXPECT_EQ(job.wait(), 0) << job.err();
}

}  // namespace
}  // namespace hvd::test
