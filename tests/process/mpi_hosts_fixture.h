// mpi_hosts_fixture.h - mpirun of every installation over hosts with networks of their own
// (network_hosts.h). It is started on the first host, and a script takes the place of ssh.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/process/mpi_runs.h"
#include "tests/process/network_hosts.h"

namespace hvd::test {

class MpiHostsFixture : public ::testing::TestWithParam<MpiInstallation> {
 protected:
  // From SetUpTestSuite.
  static void create(const std::vector<std::string>& names) {
    names_ = names;
    hosts_ = std::make_unique<NetworkHosts>();
    if (!hosts_->create(names)) hosts_.reset();
  }
  static void TearDownTestSuite() { hosts_.reset(); }
  void SetUp() override {
    if (!hosts_) GTEST_SKIP() << "network namespaces are not permitted here";
    if (!GetParam().is_installed()) GTEST_SKIP() << GetParam().mpirun << " is not installed";
    write_agent();
  }

  static bool is_open_mpi() { return GetParam().name.find("Open") != std::string::npos; }

  // The command line of mpirun, the program to follow. One rank per host, the rest on the first.
  std::vector<std::string> mpirun(int ranks) const {
    const int more = ranks - static_cast<int>(names_.size());
    std::string places;
    for (size_t i = 0; i < names_.size(); ++i) {
      places += (i == 0 ? "" : ",") + hosts_->address(names_[i]) + ":" +
                std::to_string(i == 0 ? 1 + more : 1);
    }
    std::vector<std::string> words = hosts_->enter(names_.front(), {GetParam().mpirun});
    const auto add = [&](const std::vector<std::string>& some) {
      words.insert(words.end(), some.begin(), some.end());
    };
    const std::string agent = folder_ / "agent";
    if (is_open_mpi()) {
      // The namespaces have one address each that reaches the others.
      add({"--allow-run-as-root", "--mca", "plm_rsh_agent", agent, "--mca", "plm_ssh_agent", agent,
           "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0"});
    } else {
      add({"-launcher", "ssh", "-launcher-exec", agent, "-genv", "UCX_TLS", "tcp,self"});
    }
    add({is_open_mpi() ? "-H" : "-hosts", places, "-np", std::to_string(ranks)});
    if (!GetParam().library.empty())
      add({"/usr/bin/env", "HOROVOD_MPI_LIBRARY=" + GetParam().library});
    return words;
  }

  std::string in_folder(std::string_view name) const { return folder_ / name; }

  static std::unique_ptr<NetworkHosts> hosts_;

 private:
  void write_agent() const {
    std::ofstream agent(folder_ / "agent");
    agent << "#!/bin/sh\n[ \"$1\" = -x ] && shift\nhost=$1\nshift\ncase $host in\n";
    for (const std::string& name : names_) {
      agent << hosts_->address(name) << ") exec ";
      for (const std::string& word : hosts_->enter(name, {"sh", "-c", "\"$*\""}))
        agent << word << " ";
      agent << ";;\n";
    }
    agent << "esac\nexit 255\n";
    agent.close();
    std::filesystem::permissions(folder_ / "agent", std::filesystem::perms::owner_all);
  }

  static std::vector<std::string> names_;
  TemporaryDirectory folder_;
};
inline std::unique_ptr<NetworkHosts> MpiHostsFixture::hosts_;
inline std::vector<std::string> MpiHostsFixture::names_;

}  // namespace hvd::test
