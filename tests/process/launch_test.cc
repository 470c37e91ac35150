// horovodrun as its users meet it: output, input and exit codes. How jobs end: launch_end_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/process/launched_job.h"

namespace hvd::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(LaunchOutput, EveryLineCarriesRankAndStream) {
  for (int ranks : {1, 3}) {
    LaunchedJob job(shell(ranks, "echo a; echo b; echo c >&2"));

    EXPECT_EQ(job.wait(), 0);
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string label = "[" + std::to_string(rank) + "]";
      EXPECT_THAT(job.out(), HasSubstr(label + "<stdout>:a\n"));
      EXPECT_THAT(job.out(), HasSubstr(label + "<stdout>:b\n"));
      EXPECT_THAT(job.err(), HasSubstr(label + "<stderr>:c\n"));
    }
    EXPECT_EQ(LaunchedJob::occurrences(job.out(), "\n"), 2 * ranks);
    EXPECT_EQ(LaunchedJob::occurrences(job.err(), "\n"), ranks);
  }
}

TEST(LaunchOutput, WorkersFindTheirPlaceInTheEnvironment) {
  LaunchedJob job(shell(3,
                        "echo $HOROVOD_RANK/$HOROVOD_SIZE $HOROVOD_LOCAL_RANK/$HOROVOD_LOCAL_SIZE "
                        "$HOROVOD_CROSS_RANK/$HOROVOD_CROSS_SIZE $PYTHONUNBUFFERED "
                        "$HOROVOD_HOSTNAME=$(hostname) $FROM_OUTSIDE; echo id $HOROVOD_JOB_ID >&2"),
                  {.environment = {"FROM_OUTSIDE=kept", "HOROVOD_RANK=9"}});

  EXPECT_EQ(job.wait(), 0);
  for (const char* expected :
       {"[0]<stdout>:0/3 0/3 0/1 1 ", "[1]<stdout>:1/3 1/3 0/1 1 ", "[2]<stdout>:2/3 2/3 0/1 1 "}) {
    EXPECT_THAT(job.out(), HasSubstr(expected));
  }
  EXPECT_EQ(LaunchedJob::occurrences(job.out(), " kept\n"), 3);
  EXPECT_THAT(job.err(), ContainsRegex("id [0-9a-f]{32}\n"));
  const std::string id = job.err().substr(job.err().find("id "), 35);
  EXPECT_EQ(LaunchedJob::occurrences(job.err(), id), 3)
      << "all ranks share one job id: " << job.err();
}

TEST(LaunchOutput, ALastLineWithoutNewlineGetsOne) {
  LaunchedJob job(shell(2, "printf 'one\\ntwo'"));

  EXPECT_EQ(job.wait(), 0);
  EXPECT_THAT(job.out(), HasSubstr("[0]<stdout>:two\n"));
  EXPECT_THAT(job.out(), HasSubstr("[1]<stdout>:two\n"));
}

TEST(LaunchOutput, ProgressBarsKeepTheirReturns) {
  LaunchedJob job(shell(1, "printf '10%%\\r20%%\\rdone\\n'"));

  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(job.out(), "[0]<stdout>:10%\r[0]<stdout>:20%\r[0]<stdout>:done\n");
}

TEST(LaunchOutput, TimestampsOnRequest) {
  LaunchedJob job({"-np", "1", "-prefix-timestamp", "echo", "x"});

  EXPECT_EQ(job.wait(), 0);
  EXPECT_THAT(job.out(),
              ContainsRegex("^[A-Z][a-z]+ [A-Z][a-z]+ +[0-9]+ [0-9:]+ [0-9]+\\[0\\]<stdout>:x"));
}

TEST(LaunchOutput, AHundredMegabytesArriveWholeAndInOrder) {
  constexpr int kLines = 500000;  // of 101 bytes, from each of two ranks
  LaunchedJob job(shell(2, "awk 'BEGIN { for (i = 0; i < 500000; i++) printf \"%0100d\\n\", i }'"));

  ASSERT_EQ(job.wait(), 0);
  std::array<int, 2> next{};
  std::istringstream lines(job.out());
  for (std::string line; std::getline(lines, line);) {
    ASSERT_EQ(line.size(), 112U);
    const auto rank = static_cast<size_t>(line[1] - '0');
    ASSERT_LT(rank, 2U);
    ASSERT_EQ(line.substr(3, 9), "<stdout>:");
    ASSERT_EQ(std::stoi(line.substr(100)), next[rank]++);
  }
  EXPECT_EQ(next[0], kLines);
  EXPECT_EQ(next[1], kLines);
}

TEST(LaunchOutput, FilesGetTheBytesAsTheyWereWritten) {
  const TemporaryDirectory directory;
  std::vector<std::string> arguments = shell(11, "printf 'rank %s\\rx' $HOROVOD_RANK; echo e >&2");
  arguments.insert(arguments.begin(), {"--output-filename", directory / "a/logs"});
  LaunchedJob job(arguments);

  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(contents(directory / "a/logs/rank.03/stdout"), "rank 3\rx");
  EXPECT_EQ(contents(directory / "a/logs/rank.10/stdout"), "rank 10\rx");
  EXPECT_EQ(contents(directory / "a/logs/rank.10/stderr"), "e\n");
  EXPECT_THAT(job.out(), HasSubstr("[10]<stdout>:rank 10\r"));
}

TEST(LaunchOutput, AReaderThatGoesAwayDoesNotEndTheJob) {
  const TemporaryDirectory directory;
  LaunchedJob job(shell(
      2, "echo first; yes | head -c 1000000; touch " + (directory / "done.") + "$HOROVOD_RANK"));

  EXPECT_TRUE(job.wait_for("first"));
  job.close_out();

  EXPECT_EQ(job.wait(), 0);
  EXPECT_TRUE(std::filesystem::exists(directory / "done.0"));
  EXPECT_TRUE(std::filesystem::exists(directory / "done.1"));
}

TEST(LaunchInput, RankZeroReadsOursTheOthersNothing) {
  LaunchedJob job(shell(2, "read line; echo got $line"), {.input = "hello\n"});

  EXPECT_EQ(job.wait(), 0);
  EXPECT_THAT(job.out(), HasSubstr("[0]<stdout>:got hello\n"));
  EXPECT_THAT(job.out(), HasSubstr("[1]<stdout>:got\n"));
}

TEST(LaunchExitCode, IsThatOfTheFirstFailure) {
  const std::vector<std::pair<std::string, int>> cases = {
      {"exit 0", 0}, {"exit 7", 7}, {"exit 255", 255}, {"kill -9 $$", 137}, {"kill -SEGV $$", 139}};
  for (const auto& [end, code] : cases) {
    LaunchedJob job(shell(2, "ulimit -c 0; [ $HOROVOD_RANK = 0 ] || " + end));

    EXPECT_EQ(job.wait(), code) << end << job.err();
    EXPECT_THAT(last_line(job.err()), StartsWith(code == 0 ? "" : "horovodrun: rank 1 (pid "));
  }
}

TEST(LaunchExitCode, ACommandThatCannotRunIsExplained) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "plain") << "text\n";
  std::ofstream(directory / "orphan") << "#!/no/such/interpreter\n";
  std::filesystem::permissions(directory / "orphan", std::filesystem::perms::owner_all);
  struct Case {
    std::string command;
    int code;
    std::string message;
  };
  for (const Case& c :
       {Case{"no-such-command", 127, "command 'no-such-command' not found in PATH ("},
        Case{directory / "missing", 127, "not found: No such file or directory"},
        Case{directory / "plain", 126, "plain': Permission denied"},
        Case{directory / "orphan", 127, "could not be started: No such file or directory"}}) {
    LaunchedJob job({"-np", "2", c.command});

    EXPECT_EQ(job.wait(), c.code) << c.command;
    EXPECT_THAT(job.err(), HasSubstr(c.message));
  }
}

TEST(LaunchExitCode, AScriptWithoutFirstLineRunsInTheShell) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "script") << "echo ran with $1\n";
  std::filesystem::permissions(directory / "script", std::filesystem::perms::owner_all);
  LaunchedJob job({"-np", "1", directory / "script", "an argument"});

  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(job.out(), "[0]<stdout>:ran with an argument\n");
}

TEST(LaunchExitCode, AMistakeOnTheCommandLineIsTwoAndStartsNothing) {
  const std::vector<std::vector<std::string>> mistakes = {
      {},
      {"-np", "0", "echo", "started"},
      {"-np", "garbage", "echo", "started"},
      {"-np", "2", "--no-such-option", "echo", "started"},
      {"-np", "2", "-H", "elsewhere.example", "echo", "started"},
      {"-np", "2", "--hostfile", "/no/such/file", "echo", "started"},
      {"-np", "2", "--config-file", "/no/such/file", "echo", "started"},
      {"-np", "2", "--jsrun", "echo", "started"},
      {"echo", "started"},
      {"-np", "2", "-H", "localhost:1", "echo", "started"},
  };
  for (const auto& arguments : mistakes) {
    LaunchedJob job(arguments);

    EXPECT_EQ(job.wait(), 2);
    EXPECT_EQ(job.out(), "");
    EXPECT_THAT(job.err(), HasSubstr("--help"));
  }
}

struct HostSource {
  std::vector<std::string> environment;
  std::string source;
  std::string hosts;
};

TEST(LaunchPlanJson, HostsComeFromWhereverTheyAreSaid) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "hostfile") << "w-0.w.ns.svc slots=2\nw-1.w.ns.svc slots=2\n";
  std::ofstream(directory / "intel") << "w-0.w.ns.svc:2\nw-1.w.ns.svc:2\n";
  const std::string both = "\"name\": \"w-0.w.ns.svc\", \"slots\": 2";
  const std::vector<HostSource> sources = {
      {{"K_MPI_JOB_ROLE=launcher", "OMPI_MCA_orte_default_hostfile=" + (directory / "hostfile")},
       "OMPI_MCA_orte_default_hostfile=",
       both},
      {{"I_MPI_HYDRA_HOST_FILE=" + (directory / "intel")}, "I_MPI_HYDRA_HOST_FILE=", both},
      {{"SLURM_JOB_NODELIST=w-[0-1].w.ns.svc", "SLURM_TASKS_PER_NODE=2(x2)", "SLURM_PROCID=0"},
       "the Slurm allocation",
       both},
  };
  for (const HostSource& source : sources) {
    LaunchedJob job({"--plan-json", "true"}, {.environment = source.environment});

    EXPECT_EQ(job.wait(), 0) << job.err();
    EXPECT_THAT(job.out(), HasSubstr("\"hosts_source\": \"" + source.source));
    EXPECT_THAT(job.out(), HasSubstr(source.hosts));
    EXPECT_THAT(job.out(), HasSubstr("\"num_proc\": 4,"));
  }
}

TEST(LaunchPlanJson, AConfigurationFileCountsUnlessTheCommandLineSaysOtherwise) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "c.yaml") << "params:\n  cycle_time_ms: 3\n  cache_capacity: 5\n";
  LaunchedJob job({"--plan-json", "-np", "1", "--config-file", directory / "c.yaml",
                   "--cache-capacity", "7", "true"},
                  {.environment = {"HOROVOD_CYCLE_TIME=9"}});

  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.out(), HasSubstr("\"flag_environment\": {\"HOROVOD_CYCLE_TIME\": \"3.0\", "
                                   "\"HOROVOD_CACHE_CAPACITY\": \"7\"}"));
}

TEST(LaunchParseJson, LooksAtNoHostAndTellsWordsFromValues) {
  LaunchedJob good({"--parse-json", "-np", "4", "--hostfile", "/no/such/file", "--mpi", "true"});
  EXPECT_EQ(good.wait(), 0) << good.err();
  EXPECT_THAT(good.out(), HasSubstr("\"problem\": null"));
  EXPECT_THAT(good.out(), HasSubstr("\"hostfile\": \"/no/such/file\""));

  LaunchedJob value({"--parse-json", "-np", "4", "--cache-capacity", "-1", "true"});
  EXPECT_EQ(value.wait(), 0) << value.err();
  EXPECT_THAT(value.out(), HasSubstr("\"problem\": \"--cache-capacity: expected an integer of 0"));

  LaunchedJob words({"--parse-json", "-np", "4", "--cache-capacity", "many", "true"});
  EXPECT_EQ(words.wait(), 2);
  EXPECT_EQ(words.out(), "");
}

TEST(LaunchMpirun, BecomesTheCommandLineOfTheMpiOnPath) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "mpirun")
      << "#!/bin/sh\n[ \"$1\" = --version ] && exec echo 'mpirun (Open "
         "MPI) 4.1.4'\necho \"$@\"; exit 7\n";
  std::filesystem::permissions(directory / "mpirun", std::filesystem::perms::owner_all);
  LaunchedJob job({"--mpi", "-np", "2", "-H", "a:1,b:1", "python", "x y"},
                  {.environment = {"PATH=" + (directory / "") + ":/usr/bin:/bin"}});

  EXPECT_EQ(job.wait(), 7);
  EXPECT_THAT(job.out(),
              StartsWith("--allow-run-as-root --tag-output -np 2 -H a:1,b:1 -bind-to none"));
  EXPECT_THAT(job.out(), ContainsRegex("-x PATH .*python x y\n$"));
}

TEST(LaunchExitCode, CheckBuildTellsGlooFromOurOwnEngine) {
  LaunchedJob job({"--check-build"}, {.environment = {"HOROVOD_GLOO_PLUGIN=/no/such/file"}});

  EXPECT_EQ(job.wait(), 0);
  EXPECT_THAT(job.out(), HasSubstr("    [ ] Gloo\n    [X] Native\n"));
}

TEST(LaunchExitCode, CheckBuildAndTheDoctorShowGlooWhereItIs) {
  const auto plugin = std::filesystem::path(launcher_path()).replace_filename("libhorovod_gloo.so");
  if (!std::filesystem::exists(plugin)) GTEST_SKIP() << "no plug-in";
  const LaunchedJob::Settings settings{.environment = {"HOROVOD_GLOO_PLUGIN=" + plugin.string()}};
  LaunchedJob table({"--check-build"}, settings);
  LaunchedJob doctor({"doctor"}, settings);

  EXPECT_EQ(table.wait(), 0);
  doctor.wait();
  EXPECT_THAT(table.out(), HasSubstr("\n    [X] Gloo\n    [X] Native\n"));
  EXPECT_THAT(doctor.out(), HasSubstr("; --gloo uses it between hosts"));
}

TEST(LaunchExitCode, CheckBuildShowsTheTable) {
  LaunchedJob job({"--check-build"});

  EXPECT_EQ(job.wait(), 0);
  EXPECT_THAT(job.out(), StartsWith("Horovod v"));
  for (const char* line :
       {"\nAvailable Frameworks:\n    [", "\nAvailable Controllers:\n    [",
        "\nAvailable Tensor Operations:\n    [ ] NCCL\n", "] Gloo\n    [X] Native\n"}) {
    EXPECT_THAT(job.out(), HasSubstr(line));
  }
}

TEST(LaunchExitCode, HelpAndVersionAreSuccesses) {
  LaunchedJob help({"--help"});
  LaunchedJob version({"-v"});

  EXPECT_EQ(help.wait(), 0);
  EXPECT_THAT(help.out(), HasSubstr("horovodrun -np N"));
  EXPECT_EQ(version.wait(), 0);
  EXPECT_THAT(version.out(), ContainsRegex("^[0-9]+\\.[0-9]+\\.[0-9]+\n$"));
}

}  // namespace
}  // namespace hvd::test
