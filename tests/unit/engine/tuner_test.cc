// What the autotuner of rank 0 says and writes, told of allreduces at times that a test chooses.
#include "engine/drive/tuner.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/log.h"
#include "tune/axes.h"

namespace hvd::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class TunerFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "hvd-tuner-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    set_log_options({.hide_time = true});
    alone_with_the_engine();
  }
  void TearDown() override {
    set_log_options({});
    fs::remove_all(folder_);
  }

  std::string path(const char* name) const { return folder_ / name; }
  static std::string content(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  TunerOptions options() const {
    TunerOptions options;
    options.axes = tune::axes_for({.ranks = 2});
    options.steps_per_sample = 1;
    options.log_path = path("log.csv");
    options.profile_path = path("profile.txt");
    return options;
  }
  // A job of so many steps, a second each; what it says.
  static std::string said_by(const TunerOptions& options, int steps) HVD_REQUIRES(engine_role) {
    ::testing::internal::CaptureStderr();
    auto tuner = Tuner::open(options);
    EXPECT_TRUE(tuner);
    TimePoint now{};
    if (options.start != tune::Tuning{}) (*tuner)->switched(options.start, now);
    for (int step = 0; step < steps; ++step) {
      now += std::chrono::seconds(1);
      if (const auto next = (*tuner)->reduced(7, 1000, now)) (*tuner)->switched(*next, now);
    }
    (*tuner)->end_early();
    (*tuner)->flush();
    return ::testing::internal::GetCapturedStderr();
  }

  fs::path folder_;
};

TEST_F(TunerFiles, TellWhichTuningStaysWhereNothingMayBeCompared) {
  alone_with_the_engine();
  for (const int warmup : {0, 3}) {
    TunerOptions some = options();
    some.start = *tune::parse_tuning("chunk_bytes=65536");
    some.search = {.warmup_samples = warmup, .most_races = 0};

    const std::string said = said_by(some, 10);

    EXPECT_THAT(said, AllOf(HasSubstr("stays chunk_bytes=65536"), Not(HasSubstr("automatic"))))
        << warmup << " samples of warm-up";
    EXPECT_EQ(*tune::parse_profile(content(some.profile_path)), some.start);
  }
}

TEST_F(TunerFiles, TellThatAJobHadNothingToMeasure) {
  alone_with_the_engine();
  EXPECT_THAT(said_by(options(), 0), HasSubstr("no allreduce of the global process set"));
  EXPECT_THAT(said_by(options(), 1), HasSubstr("before the first comparison"));
  EXPECT_FALSE(fs::exists(path("profile.txt")));
}

TEST_F(TunerFiles, KeepTheRowsOfEarlierWorldsOfAJob) {
  alone_with_the_engine();
  TunerOptions again = options();
  said_by(again, 4);
  const std::string first = content(again.log_path);
  ASSERT_THAT(first, HasSubstr("\n"));

  again.continues_log = true;
  said_by(again, 4);

  const std::string both = content(again.log_path);
  EXPECT_EQ(both.substr(0, first.size()), first);
  EXPECT_EQ(both.size(), 2 * first.size() - tune::log_header().size()) << "one header\n" << both;
  again.continues_log = false;
  said_by(again, 4);
  EXPECT_EQ(content(again.log_path), first) << "another job begins anew";
}

TEST_F(TunerFiles, AreMissedInTheFirstWorldAlone) {
  Settings settings;
  settings.autotune_profile = path("missing.txt");

  const auto first = read_profile(settings, 1);
  ::testing::internal::CaptureStderr();
  const auto later = read_profile(settings, 2);
  const std::string said = ::testing::internal::GetCapturedStderr();

  EXPECT_EQ(first.status().code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(later) << later.status().message();
  EXPECT_EQ(*later, tune::Tuning{});
  EXPECT_THAT(said, AllOf(HasSubstr("HOROVOD_AUTOTUNE_PROFILE"), HasSubstr(path("missing.txt"))));
}

}  // namespace
}  // namespace hvd::engine
