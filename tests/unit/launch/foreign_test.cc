// The command lines of other launchers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json_text.h"
#include "launch/doctor/engine_comparison.h"
#include "launch/os/shell_words.h"
#include "launch/plan/jsrun_command.h"
#include "launch/plan/mpi_command.h"

namespace hvd::launch {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using Mpi = MpiImplementation;

TEST(LaunchMpi, IsRecognisedByWhatItSays) {
  EXPECT_EQ(recognise_mpi("mpirun (Open MPI) 4.1.4"), Mpi::kOpenMpi);
  EXPECT_EQ(recognise_mpi("mpirun (OpenRTE) 2.1.1"), Mpi::kOpenMpi);
  EXPECT_EQ(recognise_mpi("mpirun (Open MPI) 5.0.11"), Mpi::kOpenMpi5);
  EXPECT_EQ(recognise_mpi("mpirun (IBM Spectrum MPI) 10.3.0"), Mpi::kSpectrumMpi);
  EXPECT_EQ(recognise_mpi("HYDRA build details:"), Mpi::kMpich);
  EXPECT_EQ(recognise_mpi("Intel(R) MPI Library for Linux* OS"), Mpi::kIntelMpi);
  EXPECT_EQ(recognise_mpi("something else"), std::nullopt);
}

std::string line_for(Mpi mpi, const Options& options, const std::vector<HostSlots>& hosts,
                     const EnvironmentList& environment = {"B=2", "A=1", "OLDPWD=/"}) {
  const auto line = mpi_command_line({.implementation = mpi,
                                      .options = options,
                                      .hosts = hosts,
                                      .num_proc = options.num_proc,
                                      .environment = environment});
  return line ? *line : line.status().message();
}

TEST(LaunchMpi, PlainLinesOfEveryKind) {
  const Options options{.num_proc = 2, .command = {"python", "my train.py"}};
  const std::vector<HostSlots> hosts = {{"a", 1}, {"b", 1}};

  EXPECT_EQ(line_for(Mpi::kOpenMpi, options, hosts),
            "mpirun --allow-run-as-root --tag-output -np 2 -H a:1,b:1 -bind-to none -map-by slot "
            "-mca pml ob1 -mca btl ^openib     -x A -x B  python 'my train.py'");
  EXPECT_EQ(line_for(Mpi::kOpenMpi5, options, hosts),
            "mpirun --allow-run-as-root --tag-output -np 2 -H a:1,b:1 --bind-to none --map-by slot "
            "--mca pml ob1 --mca btl ^openib     -x A -x B  python 'my train.py'");
  EXPECT_EQ(line_for(Mpi::kSpectrumMpi, options, hosts),
            "mpirun --allow-run-as-root --tag-output -np 2 -H a:1,b:1 -bind-to socket -map-by "
            "socket -rank-by core      -x A -x B  python 'my train.py'");
  EXPECT_EQ(line_for(Mpi::kMpich, options, hosts),
            "mpirun -l -np 2 -ppn 1 -hosts a,b -bind-to none -map-by slot        python 'my "
            "train.py'");
  EXPECT_EQ(line_for(Mpi::kIntelMpi, options, hosts),
            "mpirun -l -np 2 -ppn 1 -hosts a,b         python 'my train.py'");
}

TEST(LaunchMpi, HostKeysAreNotCheckedOnlyIfThatWasAskedFor) {
  Options options{.num_proc = 1, .command = {"cmd"}};
  EXPECT_THAT(line_for(Mpi::kOpenMpi, options, {{"a", 1}}), Not(HasSubstr("HostKey")));
  options.ssh.host_keys = HostKeyCheck::kNone;
  EXPECT_THAT(line_for(Mpi::kOpenMpi, options, {{"a", 1}}),
              HasSubstr("-mca plm_rsh_args \"-o StrictHostKeyChecking=no\""));
}

TEST(LaunchMpi, EveryOptionHasItsPlace) {
  Options options{.num_proc = 1, .output_directory = "logs", .command = {"cmd"}};
  options.network_interfaces = {"eth0", "eth1"};
  options.prefix_timestamp = true;
  options.ssh = {.port = 1022, .identity_file = "id"};
  options.mpi = {.more_arguments = "-x MORE", .binding_arguments = "-bind-to core"};

  EXPECT_EQ(line_for(Mpi::kOpenMpi, options, {{"a", 1}}, {"K=1"}),
            "mpirun --allow-run-as-root --tag-output -np 1 -H a:1 -bind-to core -mca pml ob1 -mca "
            "btl ^openib -mca plm_rsh_args \"-p 1022 -i id\" -mca btl_tcp_if_include eth0,eth1 -x "
            "NCCL_SOCKET_IFNAME=eth0,eth1 --output-filename logs --timestamp-output -x K -x MORE "
            "cmd");
  EXPECT_THAT(line_for(Mpi::kOpenMpi5, options, {{"a", 1}}),
              HasSubstr("--mca plm_ssh_args \"-p 1022 -i id\" --mca btl_tcp_if_include eth0,eth1"));
  options.network_interfaces = {"eth0"};
  EXPECT_EQ(line_for(Mpi::kMpich, options, {{"a", 1}}, {"K=1"}),
            "HYDRA_LAUNCHER_EXTRA_ARGS=\"-p 1022 -i id\" mpirun -l -np 1 -ppn 1 -hosts a -bind-to "
            "core  -bootstrap=ssh -iface eth0 -genv NCCL_SOCKET_IFNAME=eth0 -outfile-pattern logs  "
            "-x MORE cmd");
  EXPECT_EQ(line_for(Mpi::kIntelMpi, options, {{"a", 1}}, {"K=1"}),
            "mpirun -l -np 1 -ppn 1 -hosts a -bind-to core  -bootstrap=ssh -bootstrap-exec-args "
            "\"-p 1022 -i id\" -iface eth0 -genv NCCL_SOCKET_IFNAME=eth0 -outfile-pattern logs  "
            "-x MORE cmd");
}

TEST(LaunchMpi, LargeClustersStartFlat) {
  std::vector<HostSlots> hosts;
  for (int i = 0; i < 64; ++i) hosts.push_back({"n" + std::to_string(i), 1});
  const Options options{.num_proc = 64, .command = {"cmd"}};

  EXPECT_THAT(line_for(Mpi::kOpenMpi, options, hosts),
              HasSubstr("-mca plm_rsh_no_tree_spawn true -mca plm_rsh_num_concurrent 64"));
}

// Every value of a user stays one word of the shell, or is refused.
TEST(LaunchMpi, NothingOfTheOptionsIsReadByTheShell) {
  Options options{.num_proc = 1, .command = {"cmd"}};
  options.network_interfaces = {"eth0;touch x"};
  EXPECT_THAT(line_for(Mpi::kOpenMpi, options, {{"a", 1}}),
              HasSubstr("-mca btl_tcp_if_include 'eth0;touch x' -x NCCL_SOCKET_IFNAME='eth0;touch "
                        "x'"));
  EXPECT_THAT(line_for(Mpi::kMpich, options, {{"a", 1}}), HasSubstr("-iface 'eth0;touch x'"));
  options.network_interfaces = {};

  options.ssh.identity_file = "/keys/$(touch)";
  EXPECT_THAT(line_for(Mpi::kOpenMpi, options, {{"a", 1}}),
              HasSubstr("-mca plm_rsh_args '-i /keys/$(touch)'"));
  EXPECT_THAT(line_for(Mpi::kMpich, options, {{"a", 1}}),
              ::testing::StartsWith("HYDRA_LAUNCHER_EXTRA_ARGS='-i /keys/$(touch)' mpirun "));
  for (const char* path : {"my key", "a\"b", "a'b", "a\\b"}) {
    options.ssh.identity_file = path;
    EXPECT_THAT(line_for(Mpi::kOpenMpi, options, {{"a", 1}}), HasSubstr("mpirun cannot pass"));
  }
  options.ssh.identity_file = "";

  EXPECT_THAT(line_for(Mpi::kOpenMpi, options, {{"a;touch x", 1}}), HasSubstr("expected the name"));
  EXPECT_THAT(line_for(Mpi::kOpenMpi, options, {{"a", 1}},
                       {"GOOD=1", "ProgramFiles(x86)=C:", "A;touch x=1", "1X=2", "B%%=3"}),
              AllOf(HasSubstr(" -x GOOD "), Not(HasSubstr("touch")), Not(HasSubstr("x86")),
                    Not(HasSubstr("1X")), Not(HasSubstr("B%"))));
}

TEST(LaunchMpi, WhatAnMpiCannotDoIsNamed) {
  Options options{.num_proc = 3, .command = {"cmd"}};
  EXPECT_THAT(line_for(Mpi::kMpich, options, {{"a", 1}, {"b", 2}}),
              HasSubstr("same number of slots on every host, got a:1,b:2"));
  options.network_interfaces = {"eth0", "eth1"};
  EXPECT_THAT(line_for(Mpi::kIntelMpi, options, {{"a", 3}}), HasSubstr("takes one interface"));
}

TEST(LaunchJsrun, SharesOutTheProcessorsOfANode) {
  const NodeShape shape{.core_count = 4, .threads_per_core = 4, .gpu_count = 4};
  const std::vector<HostSlots> hosts = {{"h1", 2}, {"h2", 2}};

  EXPECT_EQ(jsrun_rank_file(hosts, 3, shape).value(),
            "overlapping_rs: allow\ncpu_index_using: logical\n\n"
            "rank: 0: { hostname: h1; cpu: {0-3} ; gpu: * ; mem: * }\n"
            "rank: 1: { hostname: h1; cpu: {4-7} ; gpu: * ; mem: * }\n\n"
            "rank: 2: { hostname: h2; cpu: {0-3} ; gpu: * ; mem: * }\n");
  EXPECT_THAT(jsrun_rank_file(hosts, 5, shape).status().message(), HasSubstr("slots (4)"));
  EXPECT_THAT(jsrun_rank_file({{{"h1", 5}}}, 1, shape).status().message(),
              HasSubstr("only 4 GPUs"));
}

TEST(LaunchJsrun, TheLine) {
  Options options{.num_proc = 1, .output_directory = "out", .command = {"cmd", "a b"}};
  options.mpi = {.more_arguments = "-mca x y", .binding_arguments = {}, .tcp_only = true};

  EXPECT_EQ(
      jsrun_command_line(
          {.options = options, .rank_file_path = "/tmp/r", .implementation = Mpi::kSpectrumMpi}),
      "jsrun --erf_input /tmp/r --stdio_stderr out --stdio_stdout out --smpiargs '-tcp -mca "
      "x y' cmd 'a b'");
  options.mpi.more_arguments = "it's";
  EXPECT_THAT(
      jsrun_command_line(
          {.options = options, .rank_file_path = "/tmp/r", .implementation = Mpi::kOpenMpi}),
      HasSubstr("--smpiargs 'it'\"'\"'s' cmd"));
}

TEST(LaunchShellWords, QuoteAndSplitAreInverse) {
  const std::vector<std::string> words = {"plain", "two words", "it's", "$HOME",
                                          "",      "a\\b",      "\"q\""};

  EXPECT_EQ(shell_quote("plain-1.2/x"), "plain-1.2/x");
  EXPECT_EQ(shell_quote("it's"), "'it'\"'\"'s'");
  EXPECT_EQ(shell_split(shell_join(words)).value(), words);
  EXPECT_THAT(shell_split("  a 'b c'\t\"d e\" f\\ g ").value(),
              ElementsAre("a", "b c", "d e", "f g"));
  EXPECT_FALSE(shell_split("'open").is_ok());
}

TEST(LaunchJson, EscapesWhatMustBeEscaped) {
  EXPECT_EQ(json_string("a\"b\\c\nd\x01"), "\"a\\\"b\\\\c\\nd\\u0001\"");
  EXPECT_EQ(json_string("caf\xc3\xa9"), "\"caf\xc3\xa9\"");
  EXPECT_EQ(json_string("bad\xff\xc3"), "\"bad\\udcff\\udcc3\"");
}

TEST(LaunchEngineComparison, ReadsTheTimesOfBothEngines) {
  const auto times = read_engine_times(
      "Warning: something\n[1,0]<stdout>:engine mpi 30000 9000000\nengine native 12000 5000000\n");
  ASSERT_TRUE(times.is_ok()) << times.status().message();
  EXPECT_EQ(times->mpi.small, std::chrono::microseconds(30));
  EXPECT_EQ(times->own.large, std::chrono::milliseconds(5));
}

TEST(LaunchEngineComparison, WhatIsIncompleteIsAnErrorWithTheLastWords) {
  const auto times = read_engine_times("engine mpi 30000 9000000\nengine native -1 x\nno route\n");
  EXPECT_THAT(times.status().message(), HasSubstr("'no route'"));
}

TEST(LaunchEngineComparison, SaysWhatToUse) {
  using std::chrono::milliseconds;
  EngineComparison comparison{.mpi = {milliseconds(1), milliseconds(20)},
                              .own = {milliseconds(1), milliseconds(10)}};
  EXPECT_THAT(describe(comparison), HasSubstr("HOROVOD_CPU_OPERATIONS=native"));
  std::swap(comparison.mpi, comparison.own);
  EXPECT_THAT(describe(comparison), HasSubstr("MPI is quicker here"));
  comparison.own = comparison.mpi;
  EXPECT_THAT(describe(comparison), HasSubstr("about as quick"));
  EXPECT_THAT(describe({.failure = "mpirun failed: x"}),
              HasSubstr("not compared: mpirun failed: x"));
}

}  // namespace
}  // namespace hvd::launch
