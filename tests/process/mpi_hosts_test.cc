// mpirun over hosts with networks of their own (network_hosts.h): the ranks come together and their
// data crosses without anything being set. Skipped where namespaces are not permitted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/process/mpi_runs.h"
#include "tests/process/network_hosts.h"

namespace hvd::test {
namespace {

using ::testing::HasSubstr;

class MpiHosts : public ::testing::TestWithParam<MpiInstallation> {
 protected:
  static void SetUpTestSuite() {
    hosts_ = std::make_unique<NetworkHosts>();
    if (!hosts_->create({"hosta", "hostb"})) hosts_.reset();
  }
  static void TearDownTestSuite() { hosts_.reset(); }
  void SetUp() override {
    if (!hosts_) GTEST_SKIP() << "network namespaces are not permitted here";
    if (!GetParam().is_installed()) GTEST_SKIP() << GetParam().mpirun << " is not installed";
    write_agent();
  }

  // Started on one host, with the agent in the place of ssh. `setting` reaches all ranks.
  Ended run(const std::string& setting) const {
    std::string command;
    for (const std::string& word : hosts_->enter("hosta", {GetParam().mpirun}))
      command += word + " ";
    const bool is_open = GetParam().name.find("Open") != std::string::npos;
    command += is_open ? "--allow-run-as-root --mca plm_rsh_agent " + (folder_ / "agent") +
                             " --mca plm_ssh_agent " + (folder_ / "agent") +
                             " -H 10.99.0.1:1,10.99.0.2:1"
                       : "-launcher ssh -launcher-exec " + (folder_ / "agent") +
                             " -ppn 1 -hosts 10.99.0.1,10.99.0.2 -genv UCX_TLS tcp,self";
    // The namespaces have one address each that reaches the other.
    command += is_open ? " --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0" : "";
    const std::string library =
        GetParam().library.empty() ? "" : "HOROVOD_MPI_LIBRARY=" + GetParam().library + " ";
    return run_shell(command + " -np 2 env " + library + setting + " " + worker() + " worker job",
                     has_endless_finalize() ? 40 : 100);
  }
  // MPICH 4.0 over UCX's TCP hangs in MPI_Finalize now and then, also in programs without Horovod:
  // a rank waits there for the answer of another, which has come further and looks no more.
  static bool has_endless_finalize() { return GetParam().name == "DebianMpich"; }
  static void expect_good_end(const Ended& ended) {
    EXPECT_THAT(ended.text, HasSubstr("rank 0 is done\n"));
    EXPECT_THAT(ended.text, HasSubstr("rank 1 is done\n"));
    EXPECT_TRUE(ended.code == 0 || (ended.code == 124 && has_endless_finalize()))
        << ended.code << "\n"
        << ended.text;
  }

  static std::unique_ptr<NetworkHosts> hosts_;

 private:
  static std::string worker() {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "hvd_process_mpi_test";
  }
  void write_agent() const {
    std::ofstream agent(folder_ / "agent");
    agent << "#!/bin/sh\n[ \"$1\" = -x ] && shift\nhost=$1\nshift\ncase $host in\n";
    int number = 0;
    for (const char* name : {"hosta", "hostb"}) {
      agent << "10.99.0." << ++number << ") exec ";
      for (const std::string& word : hosts_->enter(name, {"sh", "-c", "\"$*\""}))
        agent << word << " ";
      agent << ";;\n";
    }
    agent << "esac\nexit 255\n";
    agent.close();
    std::filesystem::permissions(folder_ / "agent", std::filesystem::perms::owner_all);
  }

  TemporaryDirectory folder_;
};
std::unique_ptr<NetworkHosts> MpiHosts::hosts_;

TEST_P(MpiHosts, NeedNothingButMpirun) {
  const Ended ended = run("");

  expect_good_end(ended);
  EXPECT_THAT(ended.text, HasSubstr("rank 0 of 2, local 0 of 1, cross 0 of 2, MPI 1\n"));
  EXPECT_THAT(ended.text, HasSubstr("rank 1 of 2, local 0 of 1, cross 1 of 2, MPI 1\n"));
}

TEST_P(MpiHosts, ReachEachOtherByOurOwnLink) {
  const Ended ended = run("HOROVOD_CPU_OPERATIONS=native");

  expect_good_end(ended);
  EXPECT_THAT(ended.text, HasSubstr("rank 1 of 2, local 0 of 1, cross 1 of 2, MPI 1\n"));
}

INSTANTIATE_TEST_SUITE_P(, MpiHosts, ::testing::ValuesIn(mpi_installations()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace hvd::test
