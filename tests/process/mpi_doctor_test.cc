// `horovodrun doctor` over hosts with real ssh servers and a real mpirun: it runs a short job to
// say whether MPI or our own link is quicker there. Skipped where namespaces are not permitted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/process/mpi_runs.h"
#include "tests/process/ssh_server.h"

namespace hvd::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class MpiDoctor : public ::testing::TestWithParam<MpiInstallation> {
 protected:
  static void SetUpTestSuite() {
    if (!SshServers::is_installed() || !NetworkHosts::is_real_root()) {
      problem_ = "no ssh server is installed, or only root could use it";
      return;
    }
    hosts_ = std::make_unique<NetworkHosts>();
    servers_ = std::make_unique<SshServers>();
    bool is_good = hosts_->create({"hosta", "hostb"}) && servers_->prepare();
    for (const char* host : {"hosta", "hostb"}) is_good = is_good && servers_->start(*hosts_, host);
    if (is_good) return;
    problem_ = "hosts as network namespaces: " + hosts_->problem();
    servers_.reset();
  }
  static void TearDownTestSuite() {
    servers_.reset();
    hosts_.reset();
  }
  void SetUp() override {
    if (!servers_) GTEST_SKIP() << problem_;
    if (!GetParam().is_installed()) GTEST_SKIP() << GetParam().mpirun << " is not installed";
    // The doctor takes the first mpirun of the PATH.
    std::ofstream(folder_ / "mpirun") << "#!/bin/sh\nexec " << GetParam().mpirun << " \"$@\"\n";
    std::filesystem::permissions(folder_ / "mpirun", std::filesystem::perms::owner_all);
  }

  std::vector<std::string> environment() const {
    std::vector<std::string> entries = {
        "PATH=" + folder_.path() + ":" + std::getenv("PATH"),
        "UCX_TLS=tcp,self",  // the hosts share a machine, but no memory
    };
    if (!GetParam().library.empty()) entries.push_back("HOROVOD_MPI_LIBRARY=" + GetParam().library);
    return entries;
  }

  static std::string problem_;
  static std::unique_ptr<NetworkHosts> hosts_;
  static std::unique_ptr<SshServers> servers_;
  TemporaryDirectory folder_;
};
std::string MpiDoctor::problem_;
std::unique_ptr<NetworkHosts> MpiDoctor::hosts_;
std::unique_ptr<SshServers> MpiDoctor::servers_;

TEST_P(MpiDoctor, SaysWhichEngineIsQuickerBetweenTheHosts) {
  std::vector<std::string> words = {launcher_path(), "doctor"};
  const std::vector<std::string> options = servers_->options();
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"-H", "10.99.0.1:1,10.99.0.2:1"});
  // On one of the hosts: MPICH's daemons call back at the name of the host they were started from.
  words = hosts_->enter("hosta", words);
  const std::string program = words.front();
  words.erase(words.begin());

  LaunchedJob job(words, {.environment = environment(), .program = program});

  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.out(), Not(HasSubstr("not compared")));
  for (const char* engine : {"own link", "MPI"}) {
    EXPECT_THAT(job.out(), ContainsRegex(std::string("  ") + engine +
                                         " +[0-9]+ [um]s for 4 KiB, [0-9]+ [um]s for 16 MiB\n"));
  }
  EXPECT_THAT(job.out(), ContainsRegex("is quicker here|both are about as quick here"));
}

INSTANTIATE_TEST_SUITE_P(, MpiDoctor, ::testing::ValuesIn(mpi_installations()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace hvd::test
