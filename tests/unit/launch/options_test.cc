#include "launch/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/help.h"
#include "launch/option_table.h"

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
      {"--num", "3", "true"},
      {"--n=3", "true"},
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
      {{}, "-np N"},
      {{"true"}, "-np N"},
      {{"-np", "2"}, "the command is missing"},
      {{"-np", "2", ""}, "empty string"},
      {{"-np"}, "-np needs a value"},
      {{"-np", "0", "true"}, "-np: expected an integer from 1 to 4096, got '0'"},
      {{"-np", "-1", "true"}, "got '-1'"},
      {{"-np", "two", "true"}, "got 'two'"},
      {{"-np", "2x", "true"}, "got '2x'"},
      {{"-np", "", "true"}, "got ''"},
      {{"-np", "99999999999999999999", "true"}, "got '99999999999999999999'"},
      {{"--start-timeout", "soon", "-np", "1", "true"}, "--start-timeout: expected an integer"},
      {{"--output-filename", "", "-np", "1", "true"}, "the directory is empty"},
      {{"--verbose=3", "-np", "1", "true"}, "--verbose takes no value"},
      {{"--ver", "-np", "1", "true"}, "--ver is ambiguous: it could be --verbose or --version"},
      {{"--num-porc", "1", "true"}, "unknown option --num-porc; did you mean --num-proc?"},
      {{"-q", "true"}, "unknown option -q"},
  };
  for (const Mistake& mistake : mistakes) {
    const auto options = parse_options(mistake.arguments);
    ASSERT_FALSE(options.is_ok()) << mistake.message;
    EXPECT_EQ(options.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(options.status().message(), HasSubstr(mistake.message));
  }
}

TEST(LaunchHelp, ShowsEverySpellingOfEveryOption) {
  const std::string help = help_text();

  for (const OptionInfo& option : option_table()) {
    for (std::string_view name : option.names) EXPECT_THAT(help, HasSubstr(std::string(name)));
    EXPECT_THAT(help, HasSubstr(std::string(option.help)));
  }
}

TEST(LaunchHelp, FitsIntoAHundredColumns) {
  const std::string help = help_text();

  for (size_t start = 0; start < help.size();) {
    const size_t end = help.find('\n', start);
    ASSERT_NE(end, std::string::npos) << "the last line has no end";
    EXPECT_LE(end - start, 100U) << help.substr(start, end - start);
    start = end + 1;
  }
}

}  // namespace
}  // namespace hvd::launch
