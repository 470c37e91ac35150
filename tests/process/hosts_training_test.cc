// Jobs that span hosts with networks of their own: training, every operation, uneven hosts, and
// networks that are slow, partly dead, encrypted or know IPv6 only. Skipped where namespaces are
// not permitted.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/process/hosts_fixture.h"

namespace hvd::test {
namespace {

using std::chrono::seconds;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

int checked_ranks(const LaunchedJob& job) {
  return LaunchedJob::occurrences(job.out(), "has checked every operation");
}

class HostsTraining : public HostsFixture {
 protected:
  static void SetUpTestSuite() { create({"hosta", "hostb", "hostc", "hostd"}); }
};

// "epoch  3  loss 0.1234  ..." -> 0.1234
std::vector<double> losses(const std::string& text) {
  std::vector<double> found;
  for (size_t at = text.find(" loss "); at != std::string::npos; at = text.find(" loss ", at + 1)) {
    found.push_back(std::strtod(text.c_str() + at + 6, nullptr));
  }
  return found;
}

TEST_F(HostsTraining, TheLossFallsAndAllRanksStayEqual) {
  const std::string trainer =
      (std::filesystem::path(launcher_path()).parent_path() / "examples/train_mlp").string();
  LaunchedJob job({"-np", "4", "-H", "hosta:2,hostb:2", trainer, "2"},
                  {.environment = hosts_->environment()});

  EXPECT_EQ(job.wait(), 0) << job.err();
  const std::vector<double> loss = losses(job.out());
  ASSERT_EQ(loss.size(), 2u) << job.out();
  EXPECT_LT(loss[1], 0.5 * loss[0]);
  EXPECT_THAT(job.out(), HasSubstr("all ranks hold the same parameters"));
}

TEST_F(HostsTraining, EveryOperationWorksOnTwoToFourEvenAndUnevenHosts) {
  const std::vector<std::pair<int, std::string>> shapes = {
      {2, "hosta:1,hostb:1"},
      {3, "hosta:2,hostb:1"},
      {4, "hosta:1,hostb:3"},
      {4, "hosta:2,hostb:2"},
      {4, "hosta:1,hostb:1,hostc:1,hostd:1"},
      {4, "hosta:2,hostc:1,hostd:1"},
  };
  for (const auto& [count, shape] : shapes) {
    LaunchedJob job(ranks(count, shape, {"operations"}), {.environment = hosts_->environment()});

    EXPECT_EQ(job.wait(), 0) << shape << "\n" << job.out() << job.err();
    EXPECT_EQ(checked_ranks(job), count) << shape;
  }
}

TEST_F(HostsTraining, EncryptedStreamsCarryEveryOperation) {
  if (void* library = ::dlopen("libssl.so.3", RTLD_LAZY); library != nullptr) {
    ::dlclose(library);
  } else {
    GTEST_SKIP() << "OpenSSL is not installed";
  }
  LaunchedJob job(ranks(3, "hosta:2,hostb:1", {"operations"}),
                  {.environment = hosts_->environment({"HOROVOD_TLS=1"})});

  EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
  EXPECT_EQ(checked_ranks(job), 3);
}

class HostsSixOnly : public HostsFixture {
 protected:
  static void SetUpTestSuite() { create({"hosta", "hostb"}, Family::kIpv6); }
};

TEST_F(HostsSixOnly, EveryOperationWorks) {
  LaunchedJob job(ranks(3, "hosta:2,hostb:1", {"operations"}),
                  {.environment = hosts_->environment()});

  EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
  EXPECT_EQ(checked_ranks(job), 3);
}

class HostsDeadNetwork : public HostsFixture {
 protected:
  static void SetUpTestSuite() {
    create({"hosta", "hostb", "hostc"});
    if (hosts_ && !hosts_->add_dead_network()) {
      problem_ = hosts_->problem();
      hosts_.reset();
    }
  }
};

TEST_F(HostsDeadNetwork, ASecondNetworkThatSwallowsEverythingDelaysTheStartOnly) {
  LaunchedJob job(ranks(3, "hosta:1,hostb:1,hostc:1", {"operations"}),
                  {.environment = hosts_->environment()});

  EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
  EXPECT_EQ(checked_ranks(job), 3);
  EXPECT_LT(job.took(), seconds(20));
}

TEST_F(HostsDeadNetwork, AskingForTheDeadNetworkAloneNamesThePeerAndItsAddress) {
  LaunchedJob job(ranks(2, "hosta:1,hostb:1", {"steps", "1", "8"}),
                  {.environment = hosts_->environment(
                       {"HOROVOD_GLOO_IFACE=eth1", "HOROVOD_GLOO_TIMEOUT_SECONDS=2"})});

  EXPECT_NE(job.wait(), 0);
  EXPECT_THAT(job.err(), ContainsRegex("rank 1 .host hostb.*10\\.98\\.0\\.2:[0-9]+: no answer"));
}

class HostsSlowLink : public HostsFixture {
 protected:
  static void SetUpTestSuite() {
    create({"hosta", "hostb"});
    if (hosts_ && !hosts_->limit_rate("hostb", "40mbit")) {
      problem_ = hosts_->problem();
      hosts_.reset();
    }
  }
};

TEST_F(HostsSlowLink, MegabytesPassAndNobodyIsTakenForDead) {
  // 8 MiB each way take almost two seconds per step, longer than the pause between life signs.
  LaunchedJob job(ranks(3, "hosta:2,hostb:1", {"steps", "3", "8388608"}),
                  {.environment = hosts_->environment()});

  EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
  EXPECT_EQ(LaunchedJob::occurrences(job.out(), "is done"), 3);
  EXPECT_GT(job.took(), seconds(3)) << "the link was not slow";
}

}  // namespace
}  // namespace hvd::test
