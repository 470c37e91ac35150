// hosts_fixture.h - jobs of real ranks over hosts with networks of their own. One suite per
// topology: CTest runs each in a process of its own, which becomes that network.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/process/network_hosts.h"
#include "tests/support/host_worker.h"

namespace hvd::test {

class HostsFixture : public ::testing::Test {
 protected:
  using Family = NetworkHosts::Family;

  // From SetUpTestSuite.
  static void create(const std::vector<std::string>& names, Family family = Family::kIpv4) {
    hosts_ = std::make_unique<NetworkHosts>();
    problem_.clear();
    if (hosts_->create(names, family)) return;
    problem_ = hosts_->problem();
    hosts_.reset();
  }
  static void TearDownTestSuite() { hosts_.reset(); }
  void SetUp() override {
    if (!hosts_) GTEST_SKIP() << "hosts as network namespaces: " << problem_;
  }

  // Arguments of horovodrun for a job of this program's ranks (host_worker.h).
  static std::vector<std::string> ranks(int count, const std::string& hosts,
                                        const std::vector<std::string>& role) {
    std::vector<std::string> words = {"-np", std::to_string(count), "-H", hosts};
    words.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
    words.push_back(testing::kRankFlag);
    words.insert(words.end(), role.begin(), role.end());
    return words;
  }
  static std::vector<ProcessWatch> watch_ranks(const LaunchedJob& job) {
    std::vector<ProcessWatch> watches;
    for (const pid_t pid : job.numbers_after("runs with pid ")) watches.emplace_back(pid);
    return watches;
  }

  static std::unique_ptr<NetworkHosts> hosts_;
  static std::string problem_;
};
inline std::unique_ptr<NetworkHosts> HostsFixture::hosts_;
inline std::string HostsFixture::problem_;

}  // namespace hvd::test
