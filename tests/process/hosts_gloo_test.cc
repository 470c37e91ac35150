// Jobs on several hosts whose data goes through Gloo: every operation, peers that die or freeze,
// and what may be wrong with Gloo. Skipped where namespaces are not permitted, or the plug-in was
// not built.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/process/host_failures.h"
#include "tests/process/hosts_fixture.h"
#include "tests/support/process_ranks.h"

namespace hvd::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testing::monotonic_ns;
using ::testing::Not;

constexpr char kUses[] = "Gloo carries the data between hosts (Gloo ";
constexpr char kDoesNot[] = "Gloo is not used: ";

class HostsGloo : public HostsFixture {
 protected:
  static void SetUpTestSuite() { create({"hosta", "hostb", "hostc"}); }
  void SetUp() override {
    HostsFixture::SetUp();
    if (!std::filesystem::exists(built("libhorovod_gloo.so"))) GTEST_SKIP() << "no plug-in";
  }

  static std::string built(const std::string& name) {
    return std::filesystem::path(launcher_path()).replace_filename(name).string();
  }
  static std::vector<std::string> settings(std::vector<std::string> more = {},
                                           std::string plugin = built("libhorovod_gloo.so")) {
    more.insert(more.begin(),
                {"HOROVOD_GLOO_PLUGIN=" + std::move(plugin), "HOROVOD_LOG_LEVEL=info"});
    return hosts_->environment(std::move(more));
  }
  static std::vector<std::string> over_gloo(std::vector<std::string> words) {
    words.insert(words.begin(), "--gloo");
    return words;
  }
  // A short job on two hosts, whatever carries its data.
  static std::string expect_good_job(const std::vector<std::string>& environment) {
    LaunchedJob job(over_gloo(ranks(2, "hosta:1,hostb:1", {"steps", "3", "400000"})),
                    {.environment = environment});
    EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
    return job.out() + job.err();
  }
  static void expect_named(const LaunchedJob& job, int victim, int ranks, int64_t since) {
    const auto failures = failures_of(job.out());
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank == victim) continue;
      ASSERT_EQ(failures.count(rank), 1u) << "rank " << rank << "\n" << job.out() << job.err();
      EXPECT_THAT(failures.at(rank).text, HasSubstr("rank " + std::to_string(victim)));
      EXPECT_LT(failures.at(rank).at - since, 15 * kSecond);
    }
  }
};

TEST_F(HostsGloo, HasEveryOperation) {
  const TemporaryDirectory folder;
  const std::string timeline = folder / "timeline.json";
  LaunchedJob job(over_gloo(ranks(4, "hosta:2,hostb:1,hostc:1", {"operations"})),
                  {.environment = settings({"HOROVOD_TIMELINE=" + timeline})});

  EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
  EXPECT_THAT(job.out() + job.err(), HasSubstr(kUses));
  EXPECT_THAT(contents(timeline), AllOf(HasSubstr("GLOO_ALLREDUCE"), HasSubstr("GLOO_BCAST")));
}

TEST_F(HostsGloo, IsNotTakenUnlessAskedFor) {
  LaunchedJob job(ranks(2, "hosta:1,hostb:1", {"steps", "3", "400000"}),
                  {.environment = settings()});

  EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
  EXPECT_THAT(job.out() + job.err(), AllOf(Not(HasSubstr(kUses)), Not(HasSubstr(kDoesNot))));
}

TEST_F(HostsGloo, IsBuiltAgainInTheSameProcessesWithAnotherSize) {
  LaunchedJob job(over_gloo(ranks(3, "hosta:1,hostb:1,hostc:1", {"resized", "16000000"})),
                  {.environment = settings()});

  EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
  for (const char* rank : {"rank 0 ", "rank 1 "})
    EXPECT_THAT(job.out(), HasSubstr(std::string(rank) + "of 3 goes on with 2 ranks"));
  const std::string said = job.out() + job.err();
  EXPECT_NE(said.find(kUses), said.rfind(kUses)) << "in both jobs: " << said;
}

TEST_F(HostsGloo, NamesAKilledPeerOnRanksThatAreNotItsNeighboursToo) {
  LaunchedJob job(over_gloo(ranks(4, "hosta:2,hostb:1,hostc:1", {"stubborn", "16000000"})),
                  {.environment = settings()});
  ASSERT_TRUE(job.wait_for("runs with pid ", 4)) << job.out() << job.err();
  const size_t at = job.out().find("rank 3 runs with pid ");
  const pid_t victim = std::atoi(job.out().c_str() + at + 21);
  const int64_t killed_at = monotonic_ns();

  ::kill(victim, SIGKILL);

  EXPECT_EQ(job.wait(), 137);
  expect_named(job, 3, 4, killed_at);
}

TEST_F(HostsGloo, GivesUpAFrozenPeer) {
  LaunchedJob job(over_gloo(ranks(3, "hosta:1,hostb:1,hostc:1", {"until-failure", "16000000"})),
                  {.environment = settings({"HOROVOD_FROZEN_PEER_TIME_SECONDS=2"})});
  ASSERT_TRUE(job.wait_for("runs with pid ", 3)) << job.out() << job.err();
  const size_t at = job.out().find("rank 2 runs with pid ");
  const ProcessWatch victim(std::atoi(job.out().c_str() + at + 21));
  const int64_t since = monotonic_ns();

  victim.send(SIGSTOP);

  EXPECT_NE(job.wait(), 0);
  expect_named(job, 2, 3, since);
  EXPECT_TRUE(victim.ends()) << "the launcher ends it";
}

TEST_F(HostsGloo, ThatIsNotInstalledIsReplacedByOurOwnEngineWithOneLine) {
  const std::string said = expect_good_job(settings({}, "/no/such/plug-in.so"));

  EXPECT_THAT(said, ContainsRegex("Gloo is not used: rank 0 .host hosta.: the plug-in "
                                  "libhorovod_gloo.so is not installed .looked for "
                                  "/no/such/plug-in.so.*own TCP engine carries the data"));
  EXPECT_EQ(said.find(kDoesNot), said.rfind(kDoesNot)) << "once, not by every rank: " << said;
}

TEST_F(HostsGloo, ThatOneHostLacksIsReplacedOnAll) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "lib");
  std::filesystem::copy(built("libhorovod_gloo.so"), directory / "lib/plugin.so");
  ASSERT_TRUE(hosts_->run_on("hostb", "mount -t tmpfs none " + (directory / "lib")));

  const std::string said = expect_good_job(settings({}, directory / "lib/plugin.so"));

  EXPECT_TRUE(hosts_->run_on("hostb", "umount " + (directory / "lib")));
  EXPECT_THAT(said, HasSubstr("Gloo is not used: rank 1 (host hostb): "));
}

TEST_F(HostsGloo, WhoseLibraryIsMissingIsReplaced) {
  EXPECT_THAT(expect_good_job(settings({}, built("gloo_decoys/needy/libhorovod_gloo.so"))),
              ContainsRegex("Gloo is not used: .*its Gloo library is missing .libgloo.so.77"));
}

TEST_F(HostsGloo, WhoseLibraryIsTooOldIsReplaced) {
  EXPECT_THAT(expect_good_job(settings({"LD_LIBRARY_PATH=" + built("gloo_decoys/old")})),
              ContainsRegex("Gloo is not used: .*not the one it was built for .*undefined symbol"));
}

TEST_F(HostsGloo, IsNotBoundToAnotherOneInTheProcess) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer must be the first library of a process";
#endif
  EXPECT_THAT(
      expect_good_job(settings({"LD_PRELOAD=" + built("gloo_decoys/another/libanother.so")})),
      AllOf(HasSubstr(kUses), Not(HasSubstr("bound to another Gloo"))));
}

TEST_F(HostsGloo, RefusesToReplaceEncryption) {
  LaunchedJob job(over_gloo(ranks(2, "hosta:1,hostb:1", {"steps", "1", "1000"})),
                  {.environment = settings({"HOROVOD_TLS=1"})});

  EXPECT_NE(job.wait(), 0);
  EXPECT_THAT(job.out() + job.err(), HasSubstr("HOROVOD_TLS=1, but Gloo carries the data"));
}

}  // namespace
}  // namespace hvd::test
