#include "launch/options/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/options/help.h"
#include "launch/options/option_table.h"

namespace hvd::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<Options> parse(std::vector<std::string> arguments) { return parse_options(arguments); }

TEST(LaunchOptions, EverythingAfterTheFirstNonOptionIsTheCommand) {
  const auto options = parse({"-np", "2", "python", "train.py", "-np", "9", "--verbose"});

  ASSERT_TRUE(options.is_ok()) << options.status().message();
  EXPECT_EQ(options.value().num_proc, 2);
  EXPECT_FALSE(options.value().verbose);
  EXPECT_THAT(options.value().command, ElementsAre("python", "train.py", "-np", "9", "--verbose"));
}

TEST(LaunchOptions, DoubleDashEndsTheOptions) {
  const auto options = parse({"-np", "1", "--", "--strange-name", "--"});

  ASSERT_TRUE(options.is_ok());
  EXPECT_THAT(options.value().command, ElementsAre("--strange-name", "--"));
}

TEST(LaunchOptions, EverySpellingOfAnOptionMeansTheSame) {
  const std::vector<std::vector<std::string>> spellings = {
      {"-np", "3", "true"},
      {"-np=3", "true"},
      {"--num-proc", "3", "true"},
      {"--num-proc=3", "true"},
      {"--num-p", "3", "true"},
      {"--num-p=3", "true"},
      {"-np", "8", "-np", "3", "true"},
  };
  for (const auto& arguments : spellings) {
    const auto options = parse_options(arguments);
    ASSERT_TRUE(options.is_ok()) << arguments.front() << ": " << options.status().message();
    EXPECT_EQ(options.value().num_proc, 3) << arguments.front();
  }
}

TEST(LaunchOptions, ReadsEveryOption) {
  const auto options = parse({"-Hlocalhost:4", "--start-timeout", "45", "--output-filename", "logs",
                              "-prefix-timestamp", "--verbose", "-np", "4", "true"});

  ASSERT_TRUE(options.is_ok()) << options.status().message();
  EXPECT_EQ(options.value().hosts, "localhost:4");
  EXPECT_EQ(options.value().start_timeout, std::chrono::seconds(45));
  EXPECT_EQ(options.value().output_directory, "logs");
  EXPECT_TRUE(options.value().prefix_timestamp);
  EXPECT_TRUE(options.value().verbose);
}

TEST(LaunchOptions, HelpAndVersionNeedNothingElse) {
  EXPECT_EQ(parse({"--help"}).value().request, Request::kHelp);
  EXPECT_EQ(parse({"-h", "--no-such-option"}).value().request, Request::kHelp);
  EXPECT_EQ(parse({"-v"}).value().request, Request::kVersion);
  EXPECT_EQ(parse({"--vers"}).value().request, Request::kVersion);
}

struct Mistake {
  std::vector<std::string> arguments;
  std::string message;
};

TEST(LaunchOptions, AMistakeIsNamed) {
  const std::vector<Mistake> mistakes = {
      {{}, "the command is missing"},
      {{"-np", "2"}, "the command is missing"},
      {{"-np", "2", ""}, "empty string"},
      {{"-np"}, "-np needs a value"},
      {{"-np", "0", "true"}, "-np: expected an integer from 1 to 65536, got '0'"},
      {{"-np", "-1", "true"}, "got '-1'"},
      {{"-np", "two", "true"}, "got 'two'"},
      {{"-np", "2x", "true"}, "got '2x'"},
      {{"-np", "", "true"}, "got ''"},
      {{"-np", "99999999999999999999", "true"}, "got '99999999999999999999'"},
      {{"--start-timeout", "soon", "-np", "1", "true"}, "--start-timeout: expected an integer"},
      {{"--output-filename", "", "-np", "1", "true"}, "the directory is empty"},
      {{"--verbose=3", "-np", "1", "true"}, "--verbose takes no value"},
      {{"--ver", "-np", "1", "true"}, "--ver is ambiguous: it could be --verbose or --version"},
      {{"--num-porc", "1", "true"}, "unknown option '--num-porc': did you mean '--num-proc'?"},
      {{"--autotune_bayes_opt_max_samples", "1", "true"},
       "did you mean '--autotune-bayes-opt-max-samples'?"},
      {{"--verbsoe", "true"}, "unknown option '--verbsoe': did you mean '--verbose'?"},
      {{"--log-level", "wanring", "true"},
       "expected TRACE, DEBUG, INFO, WARNING, ERROR or FATAL, got 'wanring': did you mean "
       "'WARNING'?"},
      {{"-q", "true"}, "unknown option '-q'"},
  };
  for (const Mistake& mistake : mistakes) {
    const auto options = parse_options(mistake.arguments);
    ASSERT_FALSE(options.is_ok()) << mistake.message;
    EXPECT_EQ(options.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(options.status().message(), HasSubstr(mistake.message));
  }
}

TEST(LaunchOptions, ValuesThatAreRefusedAreToldApartFromWordsThatNobodyUnderstands) {
  const std::vector<Mistake> values = {
      {{"-np", "0", "true"}, "-np: expected an integer from 1 to 65536, got '0'"},
      {{"-p", "70000", "--cycle-time-ms", "-1", "true"}, "-p: expected an integer from 1 to 65535"},
      {{"--cycle-time-ms", "-1", "true"}, "--cycle-time-ms: expected a number of 0 or more"},
      {{"--blacklist-cooldown-range", "5", "4", "true"}, "expected an integer from 5 to 3600"},
      {{"--start-timeout", "0", "true"}, "--start-timeout: expected an integer from 1"},
      {{"--timeline-filename", "", "true"}, "--timeline-filename: expected a file name"},
  };
  for (const Mistake& mistake : values) {
    const auto parsed = parse_words(mistake.arguments);
    ASSERT_TRUE(parsed.is_ok()) << parsed.status().message();
    EXPECT_THAT(parsed->values.message(), HasSubstr(mistake.message));
    EXPECT_THAT(parsed->options.command, ElementsAre("true"));
    EXPECT_FALSE(parse_options(mistake.arguments).is_ok());
  }
  for (const char* words : {"--cycle-time-ms=fast", "-np=two", "--log-level=LOUD", "--no-such"}) {
    EXPECT_FALSE(parse({"-np", "0", words, "true"}).is_ok());
    EXPECT_FALSE(parse_words(std::vector<std::string>{"-np", "0", words, "true"}).is_ok()) << words;
  }
}

TEST(LaunchOptions, OptionsThatContradictEachOtherAreRefused) {
  const std::vector<Mistake> mistakes = {
      {{"-H", "a:1", "--hostfile", "f", "true"}, "-H and --hostfile contradict"},
      {{"--host-discovery-script", "s", "-H", "a:1", "true"},
       "--host-discovery-script and -H contradict"},
      {{"--join", "a:1", "true"}, "--join needs --key-file FILE"},
      {{"--key-file", "k", "true"}, "--key-file belongs to --join"},
      {{"--join", "a:1", "--key-file", "k", "-H", "a:1", "true"}, "--join and -H contradict"},
      {{"--join", "a:1", "--key-file", "k", "--hostfile", "f", "true"}, "--join and --hostfile"},
      {{"--join", "a:1", "--key-file", "k", "--mpi", "true"}, "--join and --mpi contradict"},
      {{"--gloo", "--mpi", "true"}, "--mpi contradicts --gloo"},
      {{"--autotune", "--no-autotune", "true"}, "--no-autotune contradicts --autotune"},
      {{"--no-stall-check", "--stall-check", "true"}, "--stall-check contradicts --no-stall-check"},
      {{"--log-with-timestamp", "--log-hide-timestamp", "true"}, "contradicts"},
  };
  for (const Mistake& mistake : mistakes) {
    const auto options = parse_options(mistake.arguments);
    ASSERT_FALSE(options.is_ok()) << mistake.message;
    EXPECT_THAT(options.status().message(), HasSubstr(mistake.message));
  }
  EXPECT_TRUE(parse({"--gloo", "--gloo", "true"}).is_ok()) << "the same again is no contradiction";
}

TEST(LaunchOptions, ReadsSshMpiAndElasticOptions) {
  const auto options = parse({"-p2222",
                              "-i",
                              "key",
                              "--ssh-no-host-key-check",
                              "--mpi",
                              "--mpi-args=-x A=1",
                              "--binding-args=-bind-to core",
                              "--tcp",
                              "--min-np",
                              "2",
                              "--max-num-proc",
                              "4",
                              "--slots-per-host",
                              "3",
                              "--elastic-timeout",
                              "9",
                              "--reset-limit",
                              "0",
                              "--blacklist-cooldown-range",
                              "5",
                              "60",
                              "--whole-hosts",
                              "--host-discovery-script",
                              "./d",
                              "true"});

  ASSERT_TRUE(options.is_ok()) << options.status().message();
  EXPECT_EQ(options->ssh.port, 2222);
  EXPECT_EQ(options->ssh.identity_file, "key");
  EXPECT_EQ(options->ssh.host_keys, HostKeyCheck::kNone);
  EXPECT_EQ(options->controller, Controller::kMpi);
  EXPECT_EQ(options->mpi.more_arguments, "-x A=1");
  EXPECT_EQ(options->mpi.binding_arguments, "-bind-to core");
  EXPECT_TRUE(options->mpi.tcp_only);
  EXPECT_TRUE(options->elastic.is_requested());
  EXPECT_EQ(options->elastic.min_num_proc, 2);
  EXPECT_EQ(options->elastic.max_num_proc, 4);
  EXPECT_EQ(options->elastic.slots_per_host, 3);
  EXPECT_EQ(options->elastic.reset_limit, 0);
  EXPECT_EQ(options->elastic.cooldown_range, (std::pair<int32_t, int32_t>(5, 60)));
  EXPECT_TRUE(options->elastic.whole_hosts);
}

TEST(LaunchOptions, InterfacesMayBeListedOrRepeated) {
  const auto listed = parse({"--network-interfaces", "eth0,ib0", "true"});
  const auto repeated =
      parse({"--network-interface", "eth0", "--network-interface", "ib0", "true"});
  const auto old = parse({"--network-interface", "eth0,ib0", "true"});

  EXPECT_THAT(listed->network_interfaces, ElementsAre("eth0", "ib0"));
  EXPECT_THAT(repeated->network_interfaces, ElementsAre("eth0", "ib0"));
  EXPECT_THAT(old->network_interfaces, ElementsAre("eth0", "ib0"));
  EXPECT_THAT(old->warnings, ElementsAre(HasSubstr("--network-interfaces eth0,ib0")));
}

TEST(LaunchOptions, DoctorIsAWordInFirstPlaceOnly) {
  EXPECT_EQ(parse({"doctor", "-H", "a:1"})->request, Request::kDoctor);
  EXPECT_EQ(parse({"-np", "1", "doctor"})->request, Request::kRun);
  EXPECT_TRUE(parse({"doctor", "--gpu"})->tries_gpus);
  EXPECT_FALSE(parse({"--gpu", "-np", "1", "./train"}));
}

std::string without_line_breaks(const std::string& text) {
  std::string out;
  for (char c : text) {
    const bool is_blank = c == ' ' || c == '\n';
    if (!is_blank) {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  return out;
}

TEST(LaunchHelp, ShowsEverySpellingOfEveryOption) {
  const std::string help = without_line_breaks(help_text());

  for (const OptionInfo& option : option_table()) {
    if (option.visibility != FlagVisibility::kShown) continue;
    for (std::string_view name : option.names) EXPECT_THAT(help, HasSubstr(std::string(name)));
    EXPECT_THAT(help, HasSubstr(std::string(option.help)));
    EXPECT_THAT(option_groups(), ::testing::Contains(option.group));
  }
}

TEST(LaunchHelp, ShowsTheNamesThatTakeTheObsoleteOnesPlace) {
  const std::string help = without_line_breaks(help_text());

  EXPECT_THAT(help, HasSubstr("--log-without-timestamp leave the time out of log lines"));
  EXPECT_THAT(help, HasSubstr("--log-with-timestamp begin log lines with the time (the default)"));
  EXPECT_THAT(help, ::testing::Not(HasSubstr("--log-hide-timestamp")));
}

TEST(LaunchHelp, FitsIntoTheTerminal) {
  for (size_t width : {80U, 100U}) {
    const std::string help = help_text(width);
    for (size_t start = 0; start < help.size();) {
      const size_t end = help.find('\n', start);
      ASSERT_NE(end, std::string::npos) << "the last line has no end";
      EXPECT_LE(end - start, width) << help.substr(start, end - start);
      start = end + 1;
    }
  }
}

}  // namespace
}  // namespace hvd::launch
