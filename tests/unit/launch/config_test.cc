#include "launch/options/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/options/yaml.h"

namespace hvd::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(LaunchYaml, ReadsMapsListsAndScalars) {
  const auto root = parse_yaml(
      "# a comment\n---\na: 1\nb:\n  c: 'x # y'  # why\n  d: \"q\\\"\"\nlist:\n- one\n- two\n"
      "inline: [1, 'two']\nnothing:\nitems:\n  - k: v\n    l: w\n");

  ASSERT_TRUE(root.is_ok()) << root.status().message();
  EXPECT_EQ(root->find("a")->scalar, "1");
  EXPECT_EQ(root->find("b")->find("c")->scalar, "x # y");
  EXPECT_EQ(root->find("b")->find("d")->scalar, "q\"");
  EXPECT_EQ(root->find("list")->items.at(1).scalar, "two");
  EXPECT_EQ(root->find("inline")->items.at(1).scalar, "two");
  EXPECT_EQ(root->find("nothing")->kind, YamlNode::Kind::kNull);
  EXPECT_EQ(root->find("items")->items.at(0).find("l")->scalar, "w");
}

TEST(LaunchYaml, TwoSingleQuotesInsideSingleQuotesMeanOne) {
  const auto root = parse_yaml("a: 'it''s # no comment' # but this is\nb: ''''\nc: ''\n");

  ASSERT_TRUE(root.is_ok()) << root.status().message();
  EXPECT_EQ(root->find("a")->scalar, "it's # no comment");
  EXPECT_EQ(root->find("b")->scalar, "'");
  EXPECT_EQ(root->find("c")->scalar, "");
}

TEST(LaunchYaml, MapsAndListsMayStandInOneLine) {
  const auto root = parse_yaml(
      "a: {b: 1, 'c d': \"x, # }\", e: {f: [g, {h: i}], j:}, k, }  # why\nl: []\nm: {}\n"
      "n:\n- {o: p:q}\n- [r]\n");

  ASSERT_TRUE(root.is_ok()) << root.status().message();
  const YamlNode& a = *root->find("a");
  EXPECT_EQ(a.entries.size(), 4U);
  EXPECT_EQ(a.find("b")->scalar, "1");
  EXPECT_EQ(a.find("c d")->scalar, "x, # }");
  EXPECT_EQ(a.find("e")->find("f")->items.at(1).find("h")->scalar, "i");
  EXPECT_EQ(a.find("e")->find("j")->kind, YamlNode::Kind::kNull);
  EXPECT_EQ(a.find("k")->kind, YamlNode::Kind::kNull);
  EXPECT_EQ(root->find("l")->kind, YamlNode::Kind::kList);
  EXPECT_EQ(root->find("m")->kind, YamlNode::Kind::kMap);
  EXPECT_EQ(root->find("n")->items.at(0).find("o")->scalar, "p:q");
  EXPECT_EQ(root->find("n")->items.at(1).items.at(0).scalar, "r");
  EXPECT_EQ(parse_yaml("{a: {b: 1}}\n")->find("a")->find("b")->scalar, "1");
  EXPECT_FALSE(parse_yaml("a: " + std::string(1000, '[')).is_ok());
}

TEST(LaunchYaml, OfAKeyThatIsThereTwiceTheLastCounts) {
  const auto root = parse_yaml("a: 1\nb: {c: 2, c: 3}\na:\n  d: 4\n");

  ASSERT_TRUE(root.is_ok()) << root.status().message();
  EXPECT_EQ(root->entries.size(), 2U);
  EXPECT_EQ(root->find("a")->find("d")->scalar, "4");
  EXPECT_EQ(root->find("b")->find("c")->scalar, "3");
}

TEST(LaunchYaml, ScalarsMayTakeManyLines) {
  const auto root = parse_yaml(
      "literal: |\n  a\n   b\n\n  c\nfolded: >-\n  d\n  e\n\n  f\nkept: |+\n  g\n\nplain: h\n  i\n"
      "quoted: \"j\n  k\\\n  l\\n\\x41\\u00e9\"\nflow: [m,\n  n: o,  # why\n]\n");

  ASSERT_TRUE(root.is_ok()) << root.status().message();
  EXPECT_EQ(root->find("literal")->scalar, "a\n b\n\nc\n");
  EXPECT_EQ(root->find("folded")->scalar, "d e\nf");
  EXPECT_EQ(root->find("kept")->scalar, "g\n\n");
  EXPECT_EQ(root->find("plain")->scalar, "h i");
  EXPECT_EQ(root->find("quoted")->scalar, "j kl\nA\u00e9");
  EXPECT_EQ(root->find("flow")->items.at(1).find("n")->scalar, "o");
}

TEST(LaunchYaml, AnAliasStandsForWhatItsAnchorNames) {
  const auto root = parse_yaml(
      "base: &base\n  a: 1\n  b: &two 2\nother:\n  <<: *base\n  b: 3\nlist: [*two, *base]\n");

  ASSERT_TRUE(root.is_ok()) << root.status().message();
  EXPECT_EQ(root->find("other")->find("a")->scalar, "1");
  EXPECT_EQ(root->find("other")->find("b")->scalar, "3");
  EXPECT_EQ(root->find("list")->items.at(0).scalar, "2");
  EXPECT_EQ(root->find("list")->items.at(1).find("a")->scalar, "1");
}

TEST(LaunchYaml, AliasesOfAliasesDoNotGrowWithoutEnd) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 20; ++i) {
    const std::string below = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + below;
    for (int j = 0; j < 9; ++j) text += ", " + below;
    text += "]\n";
  }

  const auto root = parse_yaml(text);

  ASSERT_FALSE(root.is_ok());
  EXPECT_THAT(root.status().message(), HasSubstr("too many nodes"));
}

TEST(LaunchYaml, AnErrorNamesItsLine) {
  const std::vector<std::pair<const char*, const char*>> mistakes = {
      {"a: 1\n\tb: 2\n", "line 2: a tab in the indentation"},
      {"a:\n    b: 1\n  c: 2\n", "line 3: the indentation is wrong"},
      {"a: *nobody\n", "line 1: nothing is called nobody"},
      {"a: | text\n", "line 1: expected the end of the line behind | or >"},
      {"a: @b\n", "line 1: a value cannot begin with @ outside quotes"},
      {"a: !program x\n", "line 1: the tag !program means nothing here"},
      {"a: 1\n---\nb: 2\n", "line 2: expected one document"},
      {"? a\n: b\n", "line 1: keys behind '?' are not supported"},
      {"a:\n  <<: 1\n", "expected a map, or a list of maps, behind <<"},
      {"a: \"\\q\"\n", "line 1: unknown escape \\q"},
      {"a: [1,\n2\n", "line 1: a list in brackets does not end"},
      {"a: {b: 1\n", "line 1: a map in braces does not end"},
      {"a: {b: 1]\n", "line 1: expected ',' or '}', got ]"},
      {"a: {b: 1} c\n", "line 1: expected the end of the line, got c"},
      {"a: {'': 1}\n", "line 1: a key is empty"},
      {"a: [1,, 2]\n", "line 1: an item is missing"},
      {"a: {b: 'open}\n", "line 1: a text in quotes does not end"},
      {"a: 'open\n", "line 1: a text in quotes does not end"},
      {"just words\n", "line 1: expected 'key: value'"},
  };
  for (const auto& [text, message] : mistakes) {
    const auto root = parse_yaml(text);
    ASSERT_FALSE(root.is_ok()) << text;
    EXPECT_THAT(root.status().message(), HasSubstr(message)) << text;
  }
}

constexpr char kEverything[] = R"(controller: GLOO
params:
  fusion_threshold_mb: 32
  cycle_time_ms: 20
  cache_capacity: 2048
  hierarchical_allreduce: true
  hierarchical_allgather: no
  torus_allreduce: False
autotune:
  enabled: true
  log_file: autotune.csv
  profile: tuned.txt
  warmup_samples: 5
  steps_per_sample: 20
  bayes_opt_max_samples: 50
  gaussian_process_noise: 0.25
timeline:
  filename: timeline.json
  mark_cycles: true
stall_check:
  enabled: false
  warning_time_seconds: 120
  shutdown_time_seconds: 240
library_options:
  mpi_threads_disable: true
  num_nccl_streams: 2
  thread_affinity: 1
  gloo_timeout_seconds: 60
logging:
  level: INFO
  with_timestamp: false
  hide_timestamp: true
)";

TEST(LaunchConfig, EveryKeyBecomesItsVariable) {
  Options options;

  ASSERT_TRUE(apply_config("c.yaml", kEverything, options).is_ok());

  EXPECT_EQ(options.controller, Controller::kGloo);
  EXPECT_THAT(options.warnings, IsEmpty());
  EXPECT_THAT(
      options.tunables.to_environment(),
      ElementsAre("HOROVOD_FUSION_THRESHOLD=33554432", "HOROVOD_CYCLE_TIME=20.0",
                  "HOROVOD_CACHE_CAPACITY=2048", "HOROVOD_HIERARCHICAL_ALLREDUCE=1",
                  "HOROVOD_HIERARCHICAL_ALLGATHER=0", "HOROVOD_TORUS_ALLREDUCE=0",
                  "HOROVOD_AUTOTUNE=1", "HOROVOD_AUTOTUNE_LOG=autotune.csv",
                  "HOROVOD_AUTOTUNE_PROFILE=tuned.txt", "HOROVOD_AUTOTUNE_WARMUP_SAMPLES=5",
                  "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE=20",
                  "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES=50",
                  "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE=0.25", "HOROVOD_TIMELINE=timeline.json",
                  "HOROVOD_TIMELINE_MARK_CYCLES=1", "HOROVOD_STALL_CHECK_DISABLE=1",
                  "HOROVOD_STALL_CHECK_TIME_SECONDS=120", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS=240",
                  "HOROVOD_MPI_THREADS_DISABLE=1", "HOROVOD_NUM_NCCL_STREAMS=2",
                  "HOROVOD_THREAD_AFFINITY=1", "HOROVOD_GLOO_TIMEOUT_SECONDS=60",
                  "HOROVOD_LOG_LEVEL=INFO", "HOROVOD_LOG_HIDE_TIME=1"));
}

TEST(LaunchConfig, IntegersAreThoseOfYaml) {
  const std::vector<std::pair<const char*, const char*>> integers = {
      {"010", "8"},   {"+0_17", "15"},   {"0x1F", "31"}, {"0b101", "5"}, {"1_000", "1000"},
      {"1:30", "90"}, {"1:0:5", "3605"}, {"0", "0"},     {"-0", "0"},    {"00", "0"},
  };
  for (const auto& [text, value] : integers) {
    Options options;
    const std::string file = std::string("params: {cache_capacity: ") + text + "}\n";
    ASSERT_TRUE(apply_config("c.yaml", file, options).is_ok()) << text;
    EXPECT_EQ(options.tunables.get(TunableId::kCacheCapacity), value) << text;
    EXPECT_EQ(options.tunables.given(TunableId::kCacheCapacity), value) << text;
  }
  Options decimal;
  ASSERT_TRUE(apply_config("c.yaml", "params: {cycle_time_ms: 0x10}\n", decimal).is_ok());
  EXPECT_EQ(decimal.tunables.get(TunableId::kCycleTime), "16.0");
  for (const char* text : {"08", "0o10", "0x", "0b2", "1:60", "1:", "_1", "0xffffffffffffffffff"}) {
    Options options;
    const std::string file = std::string("params: {cache_capacity: ") + text + "}\n";
    EXPECT_FALSE(apply_config("c.yaml", file, options).is_ok()) << text;
  }
}

TEST(LaunchConfig, ASectionWithoutEnabledHasADefault) {
  constexpr char kText[] =
      "autotune:\n  warmup_samples: 2\nstall_check: {warning_time_seconds: 9}\n";
  Options open;
  auto given = *parse_options(std::vector<std::string>{"--autotune", "--no-stall-check", "true"});
  Options empty;

  ASSERT_TRUE(apply_config("c.yaml", kText, open).is_ok());
  ASSERT_TRUE(apply_config("c.yaml", kText, given).is_ok());
  ASSERT_TRUE(apply_config("c.yaml", "autotune:\nstall_check: {}\n", empty).is_ok());

  EXPECT_EQ(open.tunables.given(TunableId::kAutotune), "false");
  EXPECT_EQ(open.tunables.given(TunableId::kStallCheckDisable), "false");
  EXPECT_EQ(given.tunables.given(TunableId::kAutotune), "true");
  EXPECT_EQ(given.tunables.given(TunableId::kStallCheckDisable), "true");
  EXPECT_THAT(empty.tunables.to_environment(), IsEmpty());
}

TEST(LaunchConfig, TheCommandLineSaysTheSameAndWins) {
  auto options = *parse_options(std::vector<std::string>{
      "--mpi", "--fusion-threshold-mb", "8", "--no-hierarchical-allreduce", "--cycle-time-ms",
      "0.5", "--stall-check", "--log-with-timestamp", "--log-level", "debug", "true"});

  ASSERT_TRUE(apply_config("c.yaml", kEverything, options).is_ok());

  EXPECT_EQ(options.controller, Controller::kMpi);
  EXPECT_THAT(options.tunables.to_environment(),
              ::testing::IsSupersetOf({"HOROVOD_FUSION_THRESHOLD=8388608", "HOROVOD_CYCLE_TIME=0.5",
                                       "HOROVOD_HIERARCHICAL_ALLREDUCE=0",
                                       "HOROVOD_STALL_CHECK_DISABLE=0", "HOROVOD_LOG_LEVEL=DEBUG",
                                       "HOROVOD_LOG_HIDE_TIME=0", "HOROVOD_CACHE_CAPACITY=2048"}));
}

TEST(LaunchConfig, WhatMeansNothingAloneIsNotExported) {
  const auto options = parse_options(std::vector<std::string>{
      "--autotune-log-file", "x", "--timeline-mark-cycles", "--autotune-warmup-samples", "1", "a"});

  EXPECT_THAT(options->tunables.to_environment(), IsEmpty());
}

TEST(LaunchConfig, AProfileIsUsedWithoutTheAutotunerToo) {
  const auto options =
      parse_options(std::vector<std::string>{"--autotune-profile", "tuned.txt", "a"});

  EXPECT_THAT(options->tunables.to_environment(),
              ElementsAre("HOROVOD_AUTOTUNE_PROFILE=tuned.txt"));
}

TEST(LaunchConfig, SwitchesThatAreOffSaySoExceptAutotuneAndMarksAlone) {
  const auto options = parse_options(std::vector<std::string>{
      "--no-autotune", "--autotune-log-file", "x", "--no-timeline-mark-cycles",
      "--no-hierarchical-allreduce", "--no-torus-allreduce", "--stall-check",
      "--no-mpi-threads-disable", "--log-with-timestamp", "a"});

  EXPECT_THAT(options->tunables.to_environment(),
              ElementsAre("HOROVOD_HIERARCHICAL_ALLREDUCE=0", "HOROVOD_TORUS_ALLREDUCE=0",
                          "HOROVOD_STALL_CHECK_DISABLE=0", "HOROVOD_MPI_THREADS_DISABLE=0",
                          "HOROVOD_LOG_HIDE_TIME=0"));
}

TEST(LaunchConfig, MistakesAreNamedWithFileLineAndKey) {
  const std::vector<std::pair<const char*, const char*>> mistakes = {
      {"controller: smoke\n", "c.yaml: line 1: controller: expected gloo or mpi, got 'smoke'"},
      {"params:\n  cache_capacity: -1\n",
       "c.yaml: line 2: params.cache_capacity: expected an integer of 0 or more"},
      {"autotune:\n  gaussian_process_noise: 1.5\n", "from 0 to 1, got '1.5'"},
      {"autotune:\n  enabled: maybe\n", "expected true or false, got 'maybe'"},
      {"params: 3\n", "expected keys of section 'params'"},
      {"params:\n  cycle_time_ms: [1]\n", "expected one value"},
      {"a:\n b: 1\n  c: 2\n", "c.yaml: line 3"},
  };
  for (const auto& [text, message] : mistakes) {
    Options options;
    const Status status = apply_config("c.yaml", text, options);
    ASSERT_FALSE(status.is_ok()) << text;
    EXPECT_THAT(status.message(), HasSubstr(message)) << text;
  }
}

TEST(LaunchConfig, WhatNobodyReadsIsAWarning) {
  Options options;

  ASSERT_TRUE(
      apply_config("c.yaml", "parms:\n  x: 1\nparams:\n  cycle_time: 1\n", options).is_ok());

  EXPECT_THAT(options.warnings,
              ElementsAre(HasSubstr("line 2: nobody reads 'parms': did you mean 'params'?"),
                          HasSubstr("line 4: nobody reads 'cycle_time'")));
}

}  // namespace
}  // namespace hvd::launch
