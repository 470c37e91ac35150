// What a job of mpirun over several hosts, with MPI as the carrier, does when one of them vanishes
// or a rank is killed. Skipped where namespaces are not permitted.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include "base/fd.h"
#include "tests/process/host_failures.h"
#include "tests/process/mpi_hosts_fixture.h"
#include "tests/support/host_worker.h"
#include "tests/support/process_ranks.h"

namespace hvd::test {
namespace {

using std::chrono::seconds;
using ::testing::ContainsRegex;
using testing::monotonic_ns;

// Four ranks on three hosts, the last of which has rank 3.
class MpiHostsFault : public MpiHostsFixture {
 protected:
  static void SetUpTestSuite() { create({"hosta", "hostb", "hostc"}); }

  std::unique_ptr<LaunchedJob> start(const std::vector<std::string>& role) const {
    std::vector<std::string> words = mpirun(4);
    words.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
    words.push_back(testing::kRankFlag);
    words.insert(words.end(), role.begin(), role.end());
    const std::string program = words.front();
    words.erase(words.begin());
    return std::make_unique<LaunchedJob>(std::move(words),
                                         LaunchedJob::Settings{.program = program});
  }
  static void expect_named(const LaunchedJob& job, int rank, int64_t since) {
    const auto failures = failures_of(job.out());
    ASSERT_EQ(failures.count(rank), 1u) << "rank " << rank << "\n" << job.out() << job.err();
    EXPECT_THAT(failures.at(rank).text, ContainsRegex("rank 3 .*host hostc"));
    // Some 4 s where each rank has a core; here MPI's ranks look without a pause, on two of them.
    EXPECT_LT(failures.at(rank).at - since, 10 * kSecond) << failures.at(rank).text;
  }
};

TEST_P(MpiHostsFault, AHostThatVanishesIsNamedOnEveryOtherRankWithinTenSeconds) {
  for (const char* bytes : {"2000", "16000000"}) {
    // An mpirun ends all ranks when the first one has ended; so those that know of it wait.
    const std::string path = in_folder("lock");
    UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
    const auto job = start({"stubborn", bytes, path});
    ASSERT_TRUE(job->wait_for("runs with pid ", 4)) << bytes;
    std::vector<ProcessWatch> ranks;
    for (const pid_t pid : job->numbers_after("runs with pid ")) ranks.emplace_back(pid);
    const int64_t vanished_at = monotonic_ns();

    ASSERT_TRUE(hosts_->cut_link("hostc"));

    EXPECT_TRUE(job->wait_for(" failed at ", 3)) << bytes;
    lock.reset();
    for (int rank = 0; rank < 3; ++rank) expect_named(*job, rank, vanished_at);
    for (const ProcessWatch& rank : ranks) EXPECT_TRUE(!rank.is_valid() || rank.ends());
    EXPECT_TRUE(hosts_->restore_link("hostc"));
    EXPECT_NE(job->wait(), 0);
  }
}

// The kernel answers for it.
TEST_P(MpiHostsFault, ARankThatIsStoppedIsNotTakenForLost) {
  const auto job = start({"until-failure", "2000"});
  ASSERT_TRUE(job->wait_for("runs with pid ", 4));
  const auto watch = [&](const std::string& rank) {
    const std::string words = "rank " + rank + " runs with pid ";
    return ProcessWatch(job->numbers_after(words).at(0));
  };
  const ProcessWatch first = watch("0"), last = watch("3");

  last.send(SIGSTOP);

  EXPECT_FALSE(first.ends_within(seconds(6))) << "longer than a host that vanishes is waited for\n"
                                              << job->out() << job->err();
  last.send(SIGCONT);
  job->send(SIGTERM);
  EXPECT_TRUE(first.ends());
  job->wait();  // some mpiruns take their own end by a signal for a success
}

INSTANTIATE_TEST_SUITE_P(, MpiHostsFault, ::testing::ValuesIn(mpi_installations()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace hvd::test
