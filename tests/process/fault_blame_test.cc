// Whom horovodrun blames in its last line when one rank fails in whatever way: that rank, however
// many others notice and end before it. On one host, and over two that are network namespaces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/process/hosts_fixture.h"

namespace hvd::test {
namespace {

using ::testing::MatchesRegex;

struct WayToFail {
  const char* how;  // see one_fails in host_worker.cc
  int exit_code;    // of horovodrun
  const char* text;
};

// The others exit with 1 when they are told.
constexpr WayToFail kFailures[] = {
    {"kill", 137, "killed by signal 9 .Killed. after .*"},
    {"exit-3", 3, "exited with code 3 after .*"},
    {"exit-0", 1, "exited with code 0 after .*, while rank [0-9] waited for it"},
    {"shutdown-3", 3, "exited with code 3 after .*"},
    {"shutdown-0", 1, "exited with code 0 after .*, while rank [0-9] waited for it"},
    {"stop", 1,
     "gives no sign of life for .* .stopped or starved. while operations wait for it "
     ".rank [0-9] says."},
};

class FaultBlame : public HostsFixture {
 protected:
  static void expect_blamed(int count, const std::string& hosts, const std::string& host,
                            std::vector<std::string> environment) {
    environment.emplace_back("HOROVOD_FROZEN_PEER_TIME_SECONDS=0.5");
    for (const WayToFail& failure : kFailures) {
      for (const int rank : {0, count - 1}) {
        // The hosts of the job are in the order of the ranks; `host` is that of the last one.
        const std::string place = rank == 0 ? "[^,]*" : host;
        LaunchedJob job(ranks(count, hosts, {"one-fails", std::to_string(rank), failure.how}),
                        {.environment = environment});

        EXPECT_EQ(job.wait(), failure.exit_code) << failure.how << "\n" << job.err();
        EXPECT_THAT(
            last_line(job.err()),
            MatchesRegex("horovodrun: rank " + std::to_string(rank) + " .pid [0-9]+, host " +
                         place + ". failed first: " + failure.text + "; .*the other.*"))
            << failure.how << " of " << count << " on " << hosts << "\n"
            << job.err();
      }
    }
  }
};

// No namespaces are needed.
class FaultBlameHere : public FaultBlame {
 protected:
  void SetUp() override {}
};

TEST_F(FaultBlameHere, TheRankThatFailedIsNamedNotThoseThatNoticed) {
  for (const int count : {2, 3, 4}) {
    expect_blamed(count, "localhost:" + std::to_string(count), "[^,]*", {});
  }
}

class FaultBlameHosts : public FaultBlame {
 protected:
  static void SetUpTestSuite() { create({"hosta", "hostb"}); }
};

TEST_F(FaultBlameHosts, TheRankThatFailedIsNamedWhateverItsHost) {
  expect_blamed(2, "hosta:1,hostb:1", "hostb", hosts_->environment());
  expect_blamed(4, "hosta:2,hostb:2", "hostb", hosts_->environment());
}

}  // namespace
}  // namespace hvd::test
