// What jobs of real ranks do when something between or on their hosts fails: a host vanishes, a
// rank is killed, the user interrupts, a host does not come up. Behind real ssh servers where they
// matter. Skipped where namespaces are not permitted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/process/host_failures.h"
#include "tests/process/hosts_fixture.h"
#include "tests/process/ssh_server.h"
#include "tests/support/process_ranks.h"

namespace hvd::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::monotonic_ns;

class HostsFault : public HostsFixture {
 protected:
  static void SetUpTestSuite() { create({"hosta", "hostb", "hostc"}); }

  static void expect_all_ended(const std::vector<ProcessWatch>& watches, size_t count) {
    EXPECT_EQ(watches.size(), count);
    for (const ProcessWatch& watch : watches) EXPECT_TRUE(!watch.is_valid() || watch.ends());
  }
};

TEST_F(HostsFault, ARankThatIsKilledOnAnotherHostIsNamedEverywhere) {
  LaunchedJob job(ranks(4, "hosta:2,hostb:1,hostc:1", {"stubborn", "2000"}),
                  {.environment = hosts_->environment()});
  ASSERT_TRUE(job.wait_for("runs with pid ", 4));
  const auto watches = watch_ranks(job);
  const size_t at = job.out().find("rank 3 runs with pid ");
  const pid_t victim = std::atoi(job.out().c_str() + at + 21);
  const int64_t killed_at = monotonic_ns();

  ::kill(victim, SIGKILL);

  EXPECT_EQ(job.wait(), 137);
  expect_all_ended(watches, 4);
  const auto failures = failures_of(job.out());
  for (int rank = 0; rank < 3; ++rank) {
    ASSERT_EQ(failures.count(rank), 1u) << "rank " << rank << "\n" << job.out() << job.err();
    EXPECT_THAT(failures.at(rank).text, ContainsRegex("rank 3 .*host hostc"));
    EXPECT_LT(failures.at(rank).at - killed_at, 5 * kSecond);
  }
  EXPECT_THAT(last_line(job.err()),
              ContainsRegex("rank 3 .pid " + std::to_string(victim) +
                            ", host hostc. failed first: killed by signal 9"));
}

TEST_F(HostsFault, ControlCEndsRanksThatWorkOnAllHostsWithinTwoSeconds) {
  LaunchedJob job(ranks(4, "hosta:2,hostb:1,hostc:1", {"until-failure", "2000000"}),
                  {.environment = hosts_->environment()});
  ASSERT_TRUE(job.wait_for("runs with pid ", 4));
  const auto watches = watch_ranks(job);
  const int64_t asked_at = monotonic_ns();

  job.send(SIGINT);

  EXPECT_EQ(job.wait(), 130);
  EXPECT_LT(monotonic_ns() - asked_at, 2 * kSecond);
  expect_all_ended(watches, 4);
}

TEST_F(HostsFault, ASecondControlCKillsRanksThatIgnoreTheFirst) {
  LaunchedJob job(ranks(2, "hosta:1,hostb:1", {"stubborn", "1000"}),
                  {.environment = hosts_->environment({"HOROVOD_TERMINATION_GRACE_SECONDS=1000"})});
  ASSERT_TRUE(job.wait_for("runs with pid ", 2));
  const auto watches = watch_ranks(job);

  for (int presses = 0; presses < 100 && !job.has_ended_within(milliseconds(100)); ++presses) {
    job.send(SIGINT);
  }

  EXPECT_EQ(job.wait(), 130);
  expect_all_ended(watches, 2);
}

TEST_F(HostsFault, AProgramThatOneHostLacksStartsNowhere) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "bin");
  std::ofstream(directory / "bin/tool") << "#!/bin/sh\ntouch " << (directory / "started") << "\n";
  std::filesystem::permissions(directory / "bin/tool", std::filesystem::perms::owner_all);
  ASSERT_TRUE(hosts_->run_on("hostb", "mount -t tmpfs none " + (directory / "bin")));

  LaunchedJob job({"-np", "2", "-H", "hosta:1,hostb:1", directory / "bin/tool"},
                  {.environment = hosts_->environment()});

  EXPECT_EQ(job.wait(), 127);
  EXPECT_TRUE(hosts_->run_on("hostb", "umount " + (directory / "bin")));
  EXPECT_THAT(job.err(), HasSubstr("host hostb did not come up: command '" +
                                   (directory / "bin/tool") + "' not found"));
  EXPECT_THAT(job.err(), HasSubstr("horovodrun: audit: nobody joined"));
  EXPECT_THAT(job.err(), EndsWith("nothing was started\n"));
  EXPECT_FALSE(std::filesystem::exists(directory / "started"));
}

// A host that vanishes must be really gone: its connections, that of ssh included, just stop.
class HostsSshFault : public HostsFault {
 protected:
  static void SetUpTestSuite() {
    HostsFault::SetUpTestSuite();
    if (!hosts_) return;
    servers_ = std::make_unique<SshServers>();
    bool is_good =
        SshServers::is_installed() && NetworkHosts::is_real_root() && servers_->prepare();
    for (const char* host : {"hosta", "hostb", "hostc"}) {
      is_good = is_good && servers_->start(*hosts_, host);
    }
    if (is_good) return;
    problem_ = "no ssh server is installed, or only root could use it";
    servers_.reset();
    hosts_.reset();
  }
  static void TearDownTestSuite() {
    servers_.reset();
    HostsFault::TearDownTestSuite();
  }
  static std::vector<std::string> over_ssh(std::vector<std::string> arguments) {
    const std::vector<std::string> options = servers_->options();
    arguments.insert(arguments.begin(), options.begin(), options.end());
    return arguments;
  }

  // A job on three hosts, the last of which has rank 3 and can be made to vanish.
  static std::vector<std::string> ranks_on_three(const std::vector<std::string>& role) {
    return over_ssh(ranks(4, "10.99.0.1:2,10.99.0.2:1,10.99.0.3:1", role));
  }
  static void expect_named(const LaunchedJob& job, int rank, int64_t vanished_at,
                           int64_t limit_seconds = 5) {
    const auto failures = failures_of(job.out());
    ASSERT_EQ(failures.count(rank), 1u) << "rank " << rank << "\n" << job.out() << job.err();
    EXPECT_THAT(failures.at(rank).text, ContainsRegex("rank 3 .*host 10.99.0.3"));
    EXPECT_LT(failures.at(rank).at - vanished_at, limit_seconds * kSecond)
        << failures.at(rank).text;
  }
  static void expect_end(LaunchedJob& job, const std::vector<ProcessWatch>& watches) {
    EXPECT_NE(job.wait(), 0);
    EXPECT_LT(job.took(), seconds(30));
    expect_all_ended(watches, 4);
    EXPECT_THAT(last_line(job.err()), ContainsRegex("host 10.99.0.3"));
    EXPECT_TRUE(hosts_->restore_link("hostc"));
  }
  static void expect_vanished_host_is_named(const std::string& bytes,
                                            const std::vector<std::string>& environment = {},
                                            int64_t limit_seconds = 5) {
    LaunchedJob job(ranks_on_three({"stubborn", bytes}), {.environment = environment});
    ASSERT_TRUE(job.wait_for("runs with pid ", 4));
    const auto watches = watch_ranks(job);
    const int64_t vanished_at = monotonic_ns();

    ASSERT_TRUE(hosts_->cut_link("hostc"));

    expect_end(job, watches);
    for (int rank = 0; rank < 3; ++rank) expect_named(job, rank, vanished_at, limit_seconds);
  }

  static std::unique_ptr<SshServers> servers_;
};
std::unique_ptr<SshServers> HostsSshFault::servers_;

TEST_F(HostsSshFault, AHostThatVanishesIsNamedOnEveryOtherRankWithinFiveSeconds) {
  expect_vanished_host_is_named("2000");
}

// As on a machine so crowded that a turn of others takes milliseconds: the sleep is far away.
TEST_F(HostsSshFault, RanksThatGiveOthersTurnAfterTurnLearnOfAVanishedHostToo) {
  expect_vanished_host_is_named(
      "2000", {"HOROVOD_SPIN_COUNT=1000000000", "HOROVOD_YIELD_COUNT=1000000000"}, 15);
}

TEST_F(HostsSshFault, AHostThatVanishesWhileMegabytesAreUnderWayIsNamedTheSameWay) {
  expect_vanished_host_is_named("16000000");
}

TEST_F(HostsSshFault, RanksThatSleepInABarrierLearnOfAVanishedHostToo) {
  const TemporaryDirectory directory;
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);

  LaunchedJob job(ranks_on_three({"wait", directory / "pipe"}));
  ASSERT_TRUE(job.wait_for("runs with pid ", 4));
  const auto watches = watch_ranks(job);
  const int64_t vanished_at = monotonic_ns();

  ASSERT_TRUE(hosts_->cut_link("hostc"));
  ASSERT_TRUE(job.wait_for(" failed at ", 2));
  EXPECT_TRUE(let_go(job, directory / "pipe")) << "rank 0, which did not call us until now";

  expect_end(job, watches);
  for (const int rank : {1, 2}) expect_named(job, rank, vanished_at);
  EXPECT_EQ(failures_of(job.out()).count(0), 1u) << job.out();
}

TEST_F(HostsSshFault, ControlCEndsRanksBehindSsh) {
  LaunchedJob job(over_ssh(ranks(2, "10.99.0.1:1,10.99.0.2:1", {"until-failure", "2000"})));
  ASSERT_TRUE(job.wait_for("runs with pid ", 2));
  const auto watches = watch_ranks(job);
  const int64_t asked_at = monotonic_ns();

  job.send(SIGINT);

  EXPECT_EQ(job.wait(), 130);
  EXPECT_LT(monotonic_ns() - asked_at, 2 * kSecond);
  expect_all_ended(watches, 2);
}

TEST_F(HostsSshFault, ASshServerThatNeverAnswersIsNamedAtTheStartTimeout) {
  const UniqueFd silent = hosts_->socket_on("hostb");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::inet_addr("10.99.0.2");
  address.sin_port = htons(2223);
  ASSERT_EQ(::bind(silent.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(silent.get(), 8), 0);

  LaunchedJob job({"-p", "2223", "--start-timeout", "2", "-np", "1", "-H", "10.99.0.2:1", "true"});

  EXPECT_EQ(job.wait(), 125);
  EXPECT_LT(job.took(), seconds(15));
  EXPECT_THAT(job.err(), HasSubstr("host 10.99.0.2 did not come up: no answer within 2 s"));
  EXPECT_THAT(job.err(), EndsWith("nothing was started\n"));
}

TEST_F(HostsSshFault, AHostNameThatDoesNotResolveIsNamed) {
  LaunchedJob job(over_ssh({"-np", "2", "-H", "10.99.0.1:1,nowhere.invalid:1", "true"}));

  EXPECT_EQ(job.wait(), 125);
  EXPECT_THAT(job.err(), ContainsRegex("host nowhere.invalid did not come up: .*nowhere.invalid"));
  EXPECT_THAT(job.err(), EndsWith("nothing was started\n"));
}

}  // namespace
}  // namespace hvd::test
